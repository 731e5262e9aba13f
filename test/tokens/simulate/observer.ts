import { codeOf } from '../../../src/errors.ts';
import { CLAIM_MS, type State } from '../../../src/tokens/state.ts';
import type { VirtualTime } from './virtual-time.ts';
import type { Database, Kind } from './database.ts';
import type { Machine, Process } from './process.ts';
import type { Exchange, Service } from './service.ts';

/** The right to exchange, as the database gave it. */
export interface Claimed {
  readonly attempt: string;
  readonly generation: number;
  readonly at: number;
}

/**
 * Sees everything that happens, on both sides of the network, and knows what may not happen:
 *
 * - no refresh token is sent again after a 200 was received for it, and never twice at a time;
 * - each is sent under a claim, once, and not later than 25 s after it;
 * - a pair is in the store or in an emergency file before it is used;
 * - the newest pair that was received is in the store, in a file, or with a process that saves it again;
 * - a file is not removed before the store has its pair;
 * - no token, is in the log or in the error of a caller, and each such error has a code;
 * - a process that is asked to end waits for its exchange.
 *
 * Excused is what no client can prevent: a database that has lost a commit, or its claim, a kill in the moment in which
 * the answer arrives, and a kill while neither the database nor the folder could be written.
 */
export class Observer {
  readonly violations: string[] = [];
  readonly lines: string[] = [];
  service!: Service;
  database!: Database;
  readonly #time: VirtualTime;
  readonly #machines: readonly Machine[];
  readonly #claims = new Map<Process, Claimed>();
  /** Generations that the database has lost. */
  readonly #forgotten = new Set<number>();
  #wentBackAt = Number.NEGATIVE_INFINITY;
  /** When each refresh token was first saved. */
  readonly #saved = new Map<string, number>();
  readonly #used = new Set<string>();
  /** Pairs that ended with their process. */
  readonly #perished = new Set<string>();

  constructor(time: VirtualTime, machines: readonly Machine[]) {
    this.#time = time;
    this.#machines = machines;
  }

  note(text: string): void {
    this.lines.push(`${(this.#time.now / 1000).toFixed(3).padStart(9)} s  ${text}`);
  }

  #violate(text: string): void {
    this.violations.push(text);
    this.note(`VIOLATION: ${text}`);
  }

  /** @param text that operators or callers read */
  expectNoSecret(text: string): void {
    if (SECRETS.test(text)) this.#violate(`a secret is shown: ${text.trim()}`);
  }

  claimOf(by: Process): Claimed | undefined {
    return this.#claims.get(by);
  }

  onCommit(by: Process, kind: Kind, next: State): void {
    this.note(`${by.name} commits ${kind} (generation ${next.generation})`);
    if (kind === 'claim') {
      const { attempt } = next.claim!;
      this.#claims.set(by, { attempt, generation: next.generation, at: this.#time.now });
    }
    const { refreshToken } = next.pair;
    if (!this.#saved.has(refreshToken)) this.#saved.set(refreshToken, this.#time.now);
  }

  onGoneBack(before: State | null, after: State | null): void {
    this.note(`the database goes back to generation ${after?.generation ?? 0}`);
    this.#wentBackAt = this.#time.now;
    const [from, to] = [after?.generation ?? 0, before?.generation ?? 0];
    for (let generation = from + 1; generation <= to; generation += 1) {
      this.#forgotten.add(generation);
    }
    this.#expectKept();
  }

  onSend(exchange: Exchange): void {
    const { by, refreshToken, claim } = exchange;
    if (!claim) return this.#violate(`${by.name} sends without a claim`);
    if (by.isTerminated) this.#violate(`${by.name} sends although it was asked to end`);
    if (this.#time.now - claim.at > 26_000) this.#violate(`${by.name} sends long after its claim`);
    const earlier = this.service.exchanges.filter((each) => each.refreshToken === refreshToken);
    for (const other of earlier) this.#expectNoClash(exchange, claim, other);
  }

  #expectNoClash({ by, refreshToken }: Exchange, claim: Claimed, other: Exchange): void {
    if (other.claim?.attempt === claim.attempt) {
      return this.#violate(`${by.name} sends twice for one claim`);
    }
    // The service gave the same refresh token again: it is not spent.
    if (other.claim && other.claim.generation !== claim.generation) return;
    // The database lost the claim or what was saved.
    const wentBack = this.#wentBackAt >= Math.min(claim.at, other.claim?.at ?? 0);
    if (wentBack || this.#forgotten.has(claim.generation + 1)) return;
    const next = other.gave?.refreshToken;
    const age = claim.at - (other.claim?.at ?? 0);
    if (other.receivedAt !== undefined && other.spends && !this.#perished.has(next!)) {
      // A holder that was stopped for longer than its claim, or cannot save, is why another one tries.
      const isSaved = (this.#saved.get(next!) ?? Infinity) < claim.at;
      const isOutlived = !isSaved && age >= CLAIM_MS;
      if (!isOutlived) {
        this.#violate(`${by.name} sends ${refreshToken} after its answer was received`);
      }
    }
    if (!other.isOver && !other.by.isDead && age < CLAIM_MS) {
      this.#violate(`${by.name} sends ${refreshToken} while ${other.by.name} does`);
    }
  }

  /** A caller is given this access token. */
  onUse(by: Process, accessToken: string): void {
    const exchange = this.service.exchanges.find((each) => each.gave?.accessToken === accessToken);
    const next = exchange?.gave?.refreshToken;
    if (by.isDead || !exchange?.spends || next === undefined || this.#used.has(next)) return;
    this.#used.add(next);
    if (this.#saved.has(next) || this.#isInFile(next)) return;
    // Nothing could be written, so it is used from memory.
    if (by.machine.folder.missing.has(next)) return;
    this.#violate(`${by.name} uses ${accessToken} before it is saved`);
  }

  /** A caller is given this error. */
  onError(by: Process, error: unknown): void {
    this.expectNoSecret(String(error));
    if (codeOf(error) === undefined) {
      this.#violate(`${by.name} answers an error without a code: ${String(error)}`);
    }
  }

  onRemoved(by: Process, { id, pair, generation }: State): void {
    const { state } = this.database;
    const isSaved = state?.id === id && state.generation >= generation;
    if (isSaved || this.#forgotten.has(generation)) return;
    this.#violate(`${by.name} removes the file of ${pair.refreshToken}, which is not in the store`);
  }

  onDeath(by: Process): void {
    this.note(`${by.name} has ended`);
    this.#expectKept();
  }

  /** It has closed as it was asked to. */
  onClosed(by: Process): void {
    if (this.#isExchanging(by)) this.#violate(`${by.name} ends before its exchange`);
  }

  #isExchanging(by: Process): boolean {
    return this.service.exchanges.some((exchange) => exchange.by === by && !exchange.isOver);
  }

  #newestReceived(): Exchange | undefined {
    return this.service.exchanges
      .filter((exchange) => exchange.receivedAt !== undefined && exchange.spends)
      .toSorted(
        (left, right) => orderOf(left.gave!.refreshToken) - orderOf(right.gave!.refreshToken),
      )
      .at(-1);
  }

  #expectKept(): void {
    const last = this.#newestReceived();
    const newest = last?.gave?.refreshToken;
    if (!last || newest === undefined || this.#perished.has(newest) || this.isKept(newest)) return;
    this.#perished.add(newest);
    this.note(`${newest} is kept nowhere`);
    const isForgotten = this.#saved.has(newest) && this.#wentBackAt >= last.sentAt;
    const couldNotBeWritten = last.by.isDead && last.by.machine.folder.missing.has(newest);
    // Killed between the arrival of the answer and the write of its file.
    const isTooEarly =
      this.#time.now === last.receivedAt && ['answer', 'emergency file'].includes(last.by.point);
    if (isForgotten || couldNotBeWritten || isTooEarly) return;
    this.#violate(`${newest} was received, and is kept nowhere`);
  }

  /** Whether the pair is in the store, in a file, or in the memory of a process that saves it again. */
  isKept(refreshToken: string): boolean {
    const isIn = (token: string | undefined) =>
      token !== undefined && orderOf(token) >= orderOf(refreshToken);
    return (
      isIn(this.database.state?.pair.refreshToken) ||
      this.#isInFile(refreshToken) ||
      this.#machines.some(
        ({ process }) => process !== undefined && this.#holds(process, refreshToken),
      )
    );
  }

  #holds(process: Process, refreshToken: string): boolean {
    const exchange = this.service.exchanges.find(
      (each) => each.gave?.refreshToken === refreshToken,
    );
    // It waits for its save, which takes some ms, and does not know yet that this will fail.
    const runsSince = Math.max(exchange?.receivedAt ?? 0, process.wokenAt);
    const isSaving = process.isStopped || this.#time.now - runsSince < SAVE_MS;
    if (exchange?.by === process && isSaving) return true;
    const generation = process.keeper?.health()?.generation ?? 0;
    return exchange?.claim !== undefined && generation > exchange.claim.generation;
  }

  #isInFile(refreshToken: string): boolean {
    return this.#machines
      .flatMap(({ folder }) => [...folder.files.values()])
      .some(({ pair }) => pair.refreshToken === refreshToken);
  }
}

/** Two tries of a call of the database. */
const SAVE_MS = 20;

/** Tokens as the service names them. */
const SECRETS = /\b(?:access|refresh)-\d/;

/** Pairs are numbered in the order in which the service gave them. */
function orderOf(refreshToken: string): number {
  return Number(refreshToken.split('-')[1]);
}
