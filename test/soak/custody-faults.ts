/** The faults that happen to the token store, to refreshes and beside the gateway while the load runs. */
import process from 'node:process';
import { setTimeout as pass } from 'node:timers/promises';
import type { Outcomes } from '../support/processes/mixed-load.ts';
import { KEYS, type Exit, type Operator, type OtherGateway } from './operator.ts';
import {
  ANSWERS,
  DROPPED,
  NAMED_IN_ERROR,
  type UpstreamOrder,
  type UpstreamReport,
} from './upstream-process.ts';

/** The number of requests that are in flight at a time. */
export const CALLERS = 24;

export interface CustodyFaults {
  /** The number of kinds of faults. */
  readonly kinds: number;
  /** Causes the next fault. Resolves when the gateway has refreshed since, and the store has the newest pair. */
  next(): Promise<void>;
  /** A line for each kind: how often it happened, and how it ended. */
  report(): string[];
  /** Faults that did not end as they should. */
  readonly problems: readonly string[];
}

interface Parts {
  readonly operator: Operator;
  readonly upstream: (order: UpstreamOrder) => Promise<UpstreamReport>;
  readonly outcomes: Outcomes;
}

interface Kind {
  readonly name: string;
  /** @param turn how often it has happened before: a fault that can happen in several ways takes them by turns */
  happen(turn: number): Promise<void>;
}

interface Tally {
  times: number;
  /** Which command showed the newest pair: after an uncertain exchange, `tokens recover` comes first. */
  saved: number;
  recovered: number;
  readonly outcomes: Outcomes;
}

const ANSWER = 'answer: ';
const LOCKED_MS = 5_000;
const READ_ONLY_MS = 7_000;
const STOPPED_MS = 3_000;
const LOOK_MS = 50;
const LONGEST_MS = 60_000;

export function createCustodyFaults({ operator, upstream, outcomes }: Parts): CustodyFaults {
  const problems: string[] = [];
  const tallies = new Map<string, Tally>();
  const kinds = [
    ...ANSWERS.map((name) => ({ name: ANSWER + name, happen: answered(name) })),
    ...besideGateway(),
  ];
  let count = 0;

  return {
    kinds: kinds.length,
    problems,
    next: async () => {
      const kind = kinds[count % kinds.length]!;
      const turn = Math.floor(count / kinds.length);
      count += 1;
      const tally = tallyOf(kind);
      const before = new Map(outcomes);
      try {
        await kind.happen(turn);
        if (kind.name !== ANSWER + NAMED_IN_ERROR) {
          // A pair that was issued just now is not ended by force before the service has accepted it.
          await refreshed(!kind.name.startsWith(ANSWER) && turn % 2 === 0);
        }
        await showNewestPair(tally);
      } catch (error) {
        const { latest } = await look();
        fails(kind, `${(error as Error).message} (the last exchanges: ${latest.join(', ')})`);
      }
      tally.times += 1;
      for (const [outcome, now] of outcomes) {
        const more = now - (before.get(outcome) ?? 0);
        if (more > 0) tally.outcomes.set(outcome, (tally.outcomes.get(outcome) ?? 0) + more);
      }
      if ((outcomes.get('answered') ?? 0) === (before.get('answered') ?? 0)) {
        fails(kind, 'nobody was served meanwhile');
      }
    },
    report: () => kinds.map((kind) => line(kind, tallyOf(kind))),
  };

  /** Printed at once, because later failures may only be its consequence. */
  function fails({ name }: Kind, why: string): void {
    process.stdout.write(`${name}: ${why}\n`);
    problems.push(`${name}: ${why}`);
  }

  function besideGateway(): Kind[] {
    return [
      { name: 'a foreign lock for five seconds', happen: lockedOut },
      ...(operator.isBound ? [{ name: 'files read-only', happen: readOnly }] : []),
      { name: 'an older copy in the place of the store', happen: replaced },
      { name: 'the file of the store removed', happen: removed },
      { name: '`tokens status` with other keys', happen: otherKeys },
      { name: 'a second gateway stopped and woken', happen: stopped },
      { name: 'a second gateway killed with -9', happen: killed },
      { name: '`tokens refresh`, then an older copy at once', happen: refreshedThenReplaced },
    ];
  }

  /** Applies to an early refresh, to one that callers wait for, and to one of a command, by turns. */
  function answered(name: string): Kind['happen'] {
    return async (turn) => {
      const { exchanges } = await upstream({ order: 'answer', name });
      if (turn % 3 === 1) await expire();
      if (turn % 3 === 2) await operator.command(['tokens', 'refresh']);
      await until(`a refresh was requested`, async () => (await look()).exchanges > exchanges);
    };
  }

  /** Lasts almost from one refresh to the next. */
  async function lockedOut(): Promise<void> {
    await operator.locked(() => pass(LOCKED_MS));
  }

  /** Locks the store before a refresh, and between its answer and the save. */
  async function readOnly(turn: number): Promise<void> {
    const isDuring = turn % 2 === 0;
    if (isDuring) await upstream({ order: 'hold', when: 'after' });
    operator.writable(false);
    try {
      if (isDuring) {
        await upstream({ order: 'release' });
        await until('the pair is in an emergency file', () => operator.rescued() > 0);
        await pass(STOPPED_MS);
      } else await pass(READ_ONLY_MS);
    } finally {
      operator.writable(true);
    }
    await until('the emergency file is gone', () => operator.rescued() === 0);
  }

  async function replaced(turn: number): Promise<void> {
    const copy = await operator.copyStore();
    await refreshed(turn % 2 === 1);
    await operator.putBack(copy, turn % 2 === 0 ? 'file' : 'bytes');
  }

  async function removed(): Promise<void> {
    // Without its store, a gateway cannot learn of the pair that a command has just saved there.
    await until('the gateway has the newest pair', () => operator.rescued() === 0);
    await newestAccepted();
    operator.removeStore();
    await until('the pair is in an emergency file', () => operator.rescued() > 0);
    succeeded(await operator.command(['tokens', 'recover']));
    // Before the gateway has found the new store, an expiry would rightly fail requests of callers.
    await until('the emergency file is gone', () => operator.rescued() === 0);
  }

  async function otherKeys(): Promise<void> {
    const [current, other] = KEYS;
    const both = { TOKEN_STORE_KEY: `${other},${current}` };
    succeeded(await operator.command(['tokens', 'status'], both));
    const { code, said } = await operator.command(['tokens', 'status'], {
      TOKEN_STORE_KEY: other!,
    });
    if (code === 0) throw new Error(`a store of another key was read:\n${said}`);
  }

  /** In the middle of an exchange, either its own or that of the gateway. */
  async function stopped(): Promise<void> {
    const second = await operator.serve();
    await upstream({ order: 'hold', when: 'before' });
    second.signal('SIGSTOP');
    await pass(STOPPED_MS);
    await upstream({ order: 'release' });
    await pass(1_000);
    second.signal('SIGCONT');
    await isServedBy(second);
    second.signal('SIGTERM');
    succeeded(await second.ended);
  }

  /** The exchange is not processed: if the killed gateway never reads the answer, the tokens would be lost. */
  async function killed(): Promise<void> {
    const second = await operator.serve();
    await upstream({ order: 'hold', when: 'before', name: DROPPED });
    second.signal('SIGKILL');
    await second.ended;
    await upstream({ order: 'release' });
  }

  async function refreshedThenReplaced(turn: number): Promise<void> {
    const copy = await operator.copyStore();
    succeeded(await operator.command(['tokens', 'refresh']));
    await operator.putBack(copy, turn % 2 === 0 ? 'file' : 'bytes');
  }

  /** The service issues one pair for one refresh token, so the gateway had the newest pair. */
  async function refreshed(isExpired: boolean): Promise<void> {
    const { answered: before } = await (isExpired ? expire() : look());
    await until('a refresh was answered', async () => (await look()).answered > before);
  }

  /** A token that expires before the service ever accepted it is, rightly, not refreshed again at once. */
  async function expire(): Promise<UpstreamReport> {
    for (;;) {
      const { exchanges } = await newestAccepted();
      const report = await upstream({ order: 'expire', ifExchanges: exchanges });
      if (report.exchanges === exchanges) return report;
    }
  }

  /**
   * A refresh ends the access token before: if there are more answers than requests in flight, some are of the newest.
   */
  async function newestAccepted(): Promise<UpstreamReport> {
    const report = await look();
    const enough = (outcomes.get('answered') ?? 0) + 2 * CALLERS;
    await until(
      'the newest access token is accepted',
      () => (outcomes.get('answered') ?? 0) > enough,
    );
    return report;
  }

  /** Shows it in a process that knows nothing except the store. */
  async function showNewestPair(tally: Tally): Promise<void> {
    let said = '';
    await until(
      () => `the store holds the newest pair; \`tokens refresh\` says: ${said}`,
      async () => {
        const command = await operator.command(['tokens', 'refresh']);
        said = command.said;
        if (command.code === 0) tally.saved += 1;
        else if ((await operator.command(['tokens', 'recover'])).code === 0) tally.recovered += 1;
        return command.code === 0;
      },
    );
  }

  function look(): Promise<UpstreamReport> {
    return upstream({ order: 'report' });
  }

  function tallyOf({ name }: Kind): Tally {
    const tally = tallies.get(name) ?? { times: 0, saved: 0, recovered: 0, outcomes: new Map() };
    tallies.set(name, tally);
    return tally;
  }
}

function line({ name }: Kind, { times, saved, recovered, outcomes }: Tally): string {
  const requests = [...outcomes]
    .toSorted(([, left], [, right]) => right - left)
    .map(([outcome, number]) => `${outcome} ${number}`);
  const ending =
    `newest pair in the store ${saved} of ${times}` +
    (recovered > 0 ? ` (\`tokens recover\` ${recovered})` : '');
  return `${name.padEnd(46)}${String(times).padStart(3)} times  ${ending}; ${requests.join(', ')}`;
}

/** Its connection to the service is faulty too. */
async function isServedBy({ origin }: OtherGateway): Promise<void> {
  await until('the second gateway serves', async () => {
    const response = await fetch(`${origin}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: '{ persons(first: 1) { items { id } } }' }),
    });
    return !('errors' in ((await response.json()) as object));
  });
}

function succeeded({ code, said }: Exit): void {
  if (code !== 0) throw new Error(`a process ended with exit code ${code}:\n${said.slice(-1_000)}`);
}

async function until(
  what: string | (() => string),
  look: () => boolean | Promise<boolean>,
): Promise<void> {
  const end = performance.now() + LONGEST_MS;
  while (!(await look())) {
    if (performance.now() > end) {
      throw new Error(`it did not come to be: ${typeof what === 'string' ? what : what()}`);
    }
    await pass(LOOK_MS);
  }
}
