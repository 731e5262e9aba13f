import { codeOf } from '../../src/errors.ts';
import type { ExchangeOutcome } from '../../src/tokens/service/exchange.ts';
import type { SimulatedServer } from './database.ts';
import type { Machine, Process } from './process.ts';
import type { About, Purpose } from './purpose.ts';
import type { Row } from './rows.ts';
import type { Exchange, Service } from './service.ts';
import type { VirtualTime } from './virtual-time.ts';

/** The right to exchange, as the database gave it. */
export interface Claimed {
  readonly generation: number;
  readonly at: number;
  /** It was taken over from an exchange that outlived its claim, and may still be answered or saved. */
  readonly isLate: boolean;
}

/** How long no other process may send the refresh token, and how long a process may wait for its answer. */
const CLAIM_LIFE_MS = 150_000;
/** After a fault of the database or of a process, a call may hang for this long. */
const UNDISTURBED_MS = 15_000;
/** A pair that cannot be saved is in the rescue file after a second, and the steps of its wait. */
const RESCUED_WITHIN_MS = 1_500;

/**
 * Sees everything that happens, on both sides of the network, and knows what may not happen:
 *
 * - no refresh token is sent again after a 200 was received for it, and never twice at a time;
 * - a pair is in the store or in a rescue file before it is used;
 * - the newest pair that was received is in the store, in a rescue file, or with a process that saves it again;
 * - no token, and no link of one, is in the log or in the error of a caller;
 * - every error of a caller has a code;
 * - a process that is asked to end waits for its exchange.
 *
 * The exceptions are those that no client can prevent, and each is proved: a pair whose process was killed in the first
 * second of its life, a commit that the database lost, a process that was stopped or cut off for longer than its claim.
 *
 * A lost commit is no excuse if another replica has the pair that is in use, and could have saved it again: it has run
 * since the database went back, reaches it over a session of its own, and nothing else disturbed them. Nor may the claim
 * have been taken before the database went back.
 */
export class Observer {
  readonly violations: string[] = [];
  readonly lines: string[] = [];
  readonly rows = new Map<Row, number>();
  service!: Service;
  /** Where the set is moved to comes last. */
  databases!: readonly SimulatedServer[];
  readonly #time: VirtualTime;
  readonly #machines: readonly Machine[];
  readonly #claims = new Map<Process, Claimed>();
  /** Refresh tokens that were refused as too early, and when the database had that. */
  readonly #refusals = new Map<string, number>();
  readonly #newestOf = new Map<Process, string>();
  readonly #saved = new Set<string>();
  readonly #used = new Set<string>();
  /** What each replica had when the database went back, if it can save that again. */
  #witnesses: readonly { readonly by: Process; readonly newest: string }[] = [];
  #wentBackAt = 0;
  /** When the database was last disturbed, and each process. */
  #disturbedAt = Number.NEGATIVE_INFINITY;
  readonly #disturbed = new Map<Process, number>();
  /** Refresh tokens of pairs that were damaged in the database. */
  readonly #deleted = new Set<string>();
  /** Pairs that ended with their process. */
  readonly #perished = new Set<string>();

  constructor(time: VirtualTime, machines: readonly Machine[]) {
    this.#time = time;
    this.#machines = machines;
  }

  /** The one that has the set. */
  get database(): SimulatedServer {
    return this.databases.findLast(({ isUsed }) => isUsed) ?? this.databases[0]!;
  }

  note(text: string): void {
    this.lines.push(`${(this.#time.now / 1000).toFixed(3).padStart(9)} s  ${text}`);
  }

  met(row: Row): void {
    this.rows.set(row, (this.rows.get(row) ?? 0) + 1);
  }

  #violate(text: string): void {
    this.violations.push(text);
    this.note(`VIOLATION: ${text}`);
  }

  /** @param text that operators or callers read */
  expectNoSecret(text: string): void {
    if (SECRETS.test(text)) this.#violate(`a secret is shown: ${text.trim()}`);
  }

  onCommit(by: Process, { purpose, generation, refreshToken, outcome }: About): void {
    this.note(
      `${by.name} commits ${purpose}${generation === undefined ? '' : ` of ${generation}`}`,
    );
    if (purpose === 'claim' && generation !== undefined) {
      const isLate = this.#outlivedClaims(generation).length > 0;
      this.#claims.set(by, { generation, at: this.#time.now, isLate });
    }
    if (refreshToken !== undefined) this.#saved.add(refreshToken);
    if (outcome === 'early-or-spent') this.#onRefusal(by);
    if (purpose === 'import' && by.machine.hasGateway)
      this.met('replicas start at once on one link');
  }

  /** Its process has recorded it. */
  #onRefusal(by: Process): void {
    const exchange = this.service.exchanges.findLast((each) => each.by === by);
    if (exchange?.wasEarly === true) this.#refusals.set(exchange.refreshToken, this.#time.now);
    else this.met('a spent refresh token is refused while the access token works');
  }

  onUnavailable(purpose: Purpose): void {
    if (purpose === 'claim') this.met('the database is down before a claim');
    if (purpose === 'save') this.met('the database is down after an answer');
  }

  onFull(purpose: Purpose): void {
    if (purpose === 'claim') this.met('the database is full before a claim');
    if (purpose === 'save') this.met('the database is full after an answer');
  }

  onInterruption(what: string): void {
    this.onDisturbance();
    this.met(what.endsWith('hangs') ? 'a store call hangs' : 'a commit is not heard');
  }

  #outlivedClaims(generation: number): Exchange[] {
    return this.service.exchanges.filter(
      ({ claim, isOver, by, receivedAt, gave }) =>
        claim?.generation === generation &&
        this.#time.now - claim.at >= CLAIM_LIFE_MS &&
        ((!isOver && !by.isDead) ||
          (receivedAt !== undefined && this.#newestSaved() !== gave!.refreshToken)),
    );
  }

  #newestSaved(): string {
    return this.database.look().refreshToken;
  }

  /** Only a newer pair replaces one in memory. */
  remember(by: Process, refreshToken: string): void {
    const before = this.#newestOf.get(by);
    if (before === undefined || orderOf(before) < orderOf(refreshToken)) {
      this.#newestOf.set(by, refreshToken);
    }
  }

  onSend(exchange: Exchange): void {
    const { by, refreshToken } = exchange;
    exchange.claim = this.#claims.get(by);
    const generation = exchange.claim?.generation;
    const isForgotten = generation !== undefined && this.database.forgotten.has(generation);
    const isExcused = isForgotten || exchange.claim?.isLate === true;
    const witness = this.#witnessAgainst(exchange);
    if (witness) {
      this.#violate(`${by.name} sends ${refreshToken} although ${witness.name} has the next pair`);
    }
    for (const earlier of this.service.exchanges) {
      if (earlier === exchange || earlier.refreshToken !== refreshToken || isExcused) continue;
      const next = earlier.gave?.refreshToken;
      if (earlier.receivedAt !== undefined && earlier.spends && !this.#perished.has(next!)) {
        this.#violate(`${by.name} sends ${refreshToken} after its answer was received`);
      }
      // A service that does not renew refresh tokens gives one to several generations.
      if (!earlier.isOver && !earlier.by.isDead && earlier.claim?.generation === generation) {
        this.#violate(`${by.name} sends ${refreshToken} while ${earlier.by.name} does`);
      }
    }
    if (!isExcused) this.#expectNotEarlyAgain(exchange);
    this.#countSend(exchange);
  }

  /** After the store records a refused refresh token, no process sends it again while its access token works. */
  #expectNotEarlyAgain({ by, refreshToken, claim }: Exchange): void {
    const { live, worksNow } = this.service;
    // A service that does not renew refresh tokens gives one for several access tokens.
    const wasTaken = this.service.exchanges.some(
      (exchange) => exchange.refreshToken === refreshToken && exchange.gave,
    );
    if (!worksNow || live.refreshToken !== refreshToken || wasTaken) return;
    const refusedAt = this.#refusals.get(refreshToken);
    if (refusedAt === undefined || !claim || claim.at < refusedAt) return;
    this.#violate(`${by.name} sends ${refreshToken} again before its access token has expired`);
  }

  /** A replica that could have saved the pair in use again before this refresh token was claimed. */
  #witnessAgainst({ by, refreshToken, claim }: Exchange): Process | undefined {
    if (!claim || claim.at < this.#wentBackAt) return undefined;
    const inUse = this.service.live.refreshToken;
    return this.#witnesses.find(
      (witness) =>
        witness.by !== by &&
        witness.newest === inUse &&
        orderOf(witness.newest) > orderOf(refreshToken),
    )?.by;
  }

  /** @param by the process that is disturbed; otherwise it is the database */
  onDisturbance(by?: Process): void {
    if (by) this.#disturbed.set(by, this.#time.now);
    else this.#disturbedAt = this.#time.now;
    this.#witnesses = by ? this.#witnesses.filter((witness) => witness.by !== by) : [];
  }

  #countSend({ by, sentAt, claim, refreshToken }: Exchange): void {
    const isReplay = this.service.exchanges.some(
      (exchange) => exchange.refreshToken === refreshToken && exchange.sentAt < sentAt,
    );
    if (isReplay) this.met('an uncertain exchange is repeated');
    if (!claim) this.#violate(`${by.name} sends without a claim`);
    else if (
      this.service.exchanges.some(
        (exchange) => exchange.claim === claim && exchange.sentAt < sentAt,
      )
    ) {
      this.#violate(`${by.name} sends twice for one claim`);
    } else if (sentAt - claim.at > 26_000) this.#violate(`${by.name} sends long after its claim`);
  }

  onAnswer(
    { by, gave, receivedAt, spends, sentAt, oddity, claim, wasEarly, refreshToken }: Exchange,
    outcome: ExchangeOutcome,
  ): void {
    const why = 'why' in outcome ? ` (${outcome.why})` : '';
    this.note(`${by.name} hears ${outcome.kind}${why}`);
    if (oddity) this.met(`an exchange with: ${oddity}`);
    if (receivedAt !== undefined && spends) this.remember(by, gave!.refreshToken);
    if (wasEarly) this.met('an exchange is refused as too early');
    const wasRefused = this.service.exchanges.some(
      (exchange) => exchange.wasEarly && exchange.refreshToken === refreshToken,
    );
    if (gave && wasRefused) {
      this.met('a refresh token that was refused as too early is accepted after the expiry');
    }
    if (outcome.kind !== 'invalid-grant') return;
    const isAhead = this.service.exchanges.some(
      (exchange) =>
        exchange.claim?.generation === claim?.generation &&
        exchange.receivedAt !== undefined &&
        exchange.by !== by &&
        exchange.receivedAt >= sentAt - CLAIM_LIFE_MS,
    );
    if (isAhead) this.met('a loser hears invalid_grant before the winner has saved');
  }

  /** A caller is given this access token. */
  onUse(by: Process, accessToken: string): void {
    const exchange = this.service.exchanges.find((each) => each.gave?.accessToken === accessToken);
    const next = exchange?.gave?.refreshToken;
    if (by.isDead || !exchange?.spends || next === undefined || this.#used.has(next)) return;
    this.#used.add(next);
    if (this.#saved.has(next) || this.#isRescued(next)) return;
    if (!by.hasRescueFile)
      return this.met('nothing can be saved, neither to the store nor to a file');
    this.#violate(`${by.name} uses ${accessToken} before it is saved`);
  }

  /** A caller is given this error. */
  onError(by: Process, error: unknown): void {
    this.expectNoSecret(String(error));
    if (codeOf(error) === undefined)
      this.#violate(`${by.name} answers an error without a code: ${String(error)}`);
  }

  onDeath(by: Process): void {
    this.note(`${by.name} has ended`);
    this.onDisturbance(by);
    for (const database of this.databases) database.disconnect(by);
    if (!by.machine.hasGateway) return;
    this.#countDeath(by);
    this.#expectKept(by);
  }

  #countDeath(by: Process): void {
    const claim = this.#claims.get(by);
    const exchange = this.service.exchanges.findLast((each) => each.by === by);
    const { point, at } = by.last ?? { point: '', at: 0 };
    const isNow = this.#time.now - at < 15;
    if (exchange?.wasEarly === true && !this.#refusals.has(exchange.refreshToken)) {
      this.met('an exchange is refused as too early, and its process ends before that is recorded');
    }
    if (point === 'save committed' && isNow) return this.met('killed after the save');
    if (point === 'claim committed' && isNow) return this.met('killed after the claim');
    if (exchange && !exchange.isOver) {
      this.met(exchange.gave ? 'killed before the answer was read' : 'killed while sending');
    } else if (
      exchange?.receivedAt !== undefined &&
      !this.#saved.has(exchange.gave!.refreshToken)
    ) {
      this.met('killed with an unsaved pair');
    } else if (claim && (!exchange || exchange.claim !== claim)) this.met('killed after the claim');
    else if (this.database.look().isInDoubt) this.met('killed during recovery');
    else this.met('killed before the claim');
  }

  onStop(by: Process, ms: number): void {
    this.note(`${by.name} is stopped for ${ms / 1000} s`);
    this.onDisturbance(by);
    if (ms < CLAIM_LIFE_MS) return;
    if (by.last?.point === 'claim committed' || by.last?.point === 'send') {
      this.met('stopped between claim and send, longer than every time-out');
    } else if (this.#isExchanging(by)) {
      this.met('stopped while sending, longer than every time-out');
    }
  }

  onTermination(by: Process): void {
    this.note(`${by.name} is asked to end`);
    this.onDisturbance(by);
    if (this.#isExchanging(by)) this.met('asked to end during an exchange');
  }

  /** It has stopped as it was asked to. */
  onStopped(by: Process): void {
    if (this.#isExchanging(by)) this.#violate(`${by.name} ends before its exchange`);
  }

  #isExchanging(by: Process): boolean {
    return this.service.exchanges.some((exchange) => exchange.by === by && !exchange.isOver);
  }

  /** @param refreshToken of the newest pair that the database had */
  onDamage(what: string, refreshToken: string): void {
    this.note(`${what} in the database`);
    this.met('rows of the tokens are deleted or altered');
    this.#deleted.add(refreshToken);
    this.#expectKept(undefined);
  }

  /** Whether rows of the database were damaged. */
  get wasDamaged(): boolean {
    return this.#deleted.size > 0;
  }

  onFailover(lost: number): void {
    this.note(`the database fails over, without the last ${lost} commits`);
    if (lost > 0) this.met('the database loses commits');
    this.#refusals.clear();
    this.#wentBackAt = this.#time.now;
    this.#witnesses = this.#machines.flatMap(({ process: running }) => {
      const newest = running && this.#newestOf.get(running);
      return newest !== undefined && this.#mayWitness(running!) ? [{ by: running!, newest }] : [];
    });
    this.#expectKept(undefined);
  }

  #mayWitness(by: Process): boolean {
    const { isDown, isFull, isPooled } = this.database;
    if (isDown || isFull || isPooled || by.isStopped || by.isTerminated || by.isCutOff)
      return false;
    const at = Math.max(this.#disturbedAt, this.#disturbed.get(by) ?? by.startedAt);
    return this.#time.now - at > UNDISTURBED_MS;
  }

  /** @param ended the process that has ended just now, if that is the occasion */
  #expectKept(ended: Process | undefined): void {
    const last = this.service.exchanges
      .filter((exchange) => exchange.receivedAt !== undefined && exchange.spends)
      .toSorted(
        (left, right) => orderOf(left.gave!.refreshToken) - orderOf(right.gave!.refreshToken),
      )
      .at(-1);
    const newest = last?.gave?.refreshToken;
    if (!last || newest === undefined || this.#perished.has(newest) || this.isKept(newest)) return;
    this.#perished.add(newest);
    this.note(`${newest} is kept nowhere`);
    const isForgotten =
      this.#saved.has(newest) && this.database.forgotten.has(last.claim!.generation);
    const stopped = last.by.stoppedMs - last.stoppedBefore;
    const lived = this.#time.now - last.receivedAt! - stopped;
    const isTooEarly = lived < RESCUED_WITHIN_MS && !this.#used.has(newest);
    // A pair that an answer without a clear outcome brought may be newer, and have replaced this one in the database.
    const isDeleted = [...this.#deleted].some((token) => orderOf(token) >= orderOf(newest));
    const isExcused = isForgotten || isDeleted || isTooEarly || (ended && !ended.hasRescueFile);
    if (!isExcused) this.#violate(`${newest} was received, and is kept nowhere`);
  }

  /** Whether the pair is in the store, in a rescue file, or in the memory of a process that saves it again. */
  isKept(refreshToken: string): boolean {
    const isIn = (newest: string | undefined) =>
      newest !== undefined && orderOf(newest) >= orderOf(refreshToken);
    return (
      isIn(this.#newestSaved()) ||
      this.#isRescued(refreshToken) ||
      this.#machines.some(({ process }) => process && isIn(this.#newestOf.get(process)))
    );
  }

  #isRescued(refreshToken: string): boolean {
    return this.#machines.some(({ disk }) =>
      [...disk.files].some(
        ([path, { bytes }]) =>
          path.includes('/rescue-') && bytes.includes(`\\"${refreshToken}\\"`, 0, 'utf8'),
      ),
    );
  }
}

/** Tokens as the service names them, and the path of its links. */
const SECRETS = /\b(?:access|refresh)-\d|\/links\//;

/** Pairs are numbered in the order in which the service gave them. */
function orderOf(refreshToken: string): number {
  return Number(refreshToken.split('-')[1]);
}
