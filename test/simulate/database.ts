import type {
  Database,
  Run,
  Row,
  StatementName,
  Value,
} from '../../src/tokens/store/postgres/connection.ts';
import { openPostgresStore } from '../../src/tokens/store/postgres/postgres-store.ts';
import { currentSet, findHead } from '../../src/tokens/store/token-document.ts';
import { createSealer } from '../../src/tokens/store/seal.ts';
import { StoreUnavailableError, type TokenStore } from '../../src/tokens/store/token-store.ts';
import type { TokenPair } from '../../src/tokens/token-set.ts';
import type { Chance } from './chance.ts';
import type { Observer } from './observer.ts';
import type { Process } from './process.ts';
import { aboutOf, type About, type Purpose } from './purpose.ts';
import { documentIn, execute, NO_TABLES, type Tables } from '../support/tokens/postgres-tables.ts';
import type { VirtualTime } from './virtual-time.ts';

export const INTERRUPTIONS = [
  'not committed',
  'committed, not heard',
  'hangs',
  'committed, hangs',
  'committed, goes down',
] as const;

export const DAMAGES = ['the document is deleted', 'the document is altered'] as const;

/** What happens to the next transaction with a purpose, in any process. */
export interface Interruption {
  readonly purpose: Purpose;
  readonly what: (typeof INTERRUPTIONS)[number];
}

export interface DatabaseOptions {
  readonly time: VirtualTime;
  readonly chance: Chance;
  readonly observer: Observer;
  /** The server's clock is this far ahead at first, ms. */
  readonly ahead: number;
  /** Behind a transaction pooler no change is announced. */
  readonly isPooled: boolean;
  readonly url: string;
}

export const BASE_URL = 'https://recruiting.test';
/** The wall time at which each history begins. */
export const BEGINNING = Date.UTC(2026, 0, 1);

// The time-outs of the driver and of the server: src/tokens/store/postgres/connection.ts.
const ANSWER_MS = 4_000;
const STATEMENT_MS = 3_000;
const CONNECT_MS = 3_000;
const IDLE_MS = 3_000;
/** A server that crashes is back by then. */
const DOWN_MS = 15_000;
/** A listener is connected again by then. */
const RECONNECTED_MS = { least: 250, most: 1_000 };
/** More commits than these are never lost. */
const MOST_LOST = 6;

/** A PostgreSQL server behind a network, which can fail over to a standby that lacks the last commits. */
export class SimulatedServer {
  isDown = false;
  /** Reads succeed, writes fail. */
  isFull = false;
  readonly interruptions: Interruption[] = [];
  /** Generations whose claim, or whose next pair, was committed and lost again. */
  readonly forgotten = new Set<number>();
  readonly #options: DatabaseOptions;
  #committed = NO_TABLES;
  #isUsed = false;
  /** The tables before each of the last commits, the newest one last. */
  readonly #before: { readonly tables: Tables; readonly generation: number | undefined }[] = [];
  readonly #listeners = new Map<Process, () => void>();
  /** The transaction that writes; others wait. */
  #writer: Session | undefined;
  readonly #waiting: (() => void)[] = [];
  /** Counts failovers: they end all connections. */
  #epoch = 0;

  /** The server's clock is this far ahead, ms. */
  ahead: number;

  constructor(options: DatabaseOptions) {
    this.#options = options;
    this.ahead = options.ahead;
  }

  /** A set that was there before the history. */
  async begin(pair: TokenPair): Promise<void> {
    const store = this.#openByOperator();
    await store.read();
    await store.import({ baseUrl: BASE_URL, pair, replica: 'operator', after: null });
    this.#isUsed = true;
  }

  /** As `tokens recover` does, and `tokens recover --rebuild` if that does not help. */
  async repair(): Promise<void> {
    const { isThere, document } = this.#committed;
    if (!isThere || documentIn(this.#committed)) return;
    const operator = this.#openByOperator();
    await (document === undefined ? operator.completeTables() : operator.replaceTables());
  }

  /** Somebody deletes or alters what the store holds. The claim that it has is lost with it. */
  damage(what: (typeof DAMAGES)[number]): void {
    const { document } = this.#committed;
    const set = this.#current;
    if (!set || document === undefined) return;
    const { refreshToken } = this.look();
    // A transaction that writes has read what was there before.
    this.#epoch += 1;
    if (this.#writer) this.#abort(this.#writer);
    this.forgotten.add(set.head).add(set.head - 1);
    const altered = what === 'the document is deleted' ? undefined : document.slice(0, -2);
    this.#committed = { ...this.#committed, document: altered };
    this.#options.observer.onDamage(what, refreshToken);
  }

  get #current() {
    const document = documentIn(this.#committed);
    return document && currentSet(document);
  }

  #openByOperator() {
    const clock = { now: () => BEGINNING, elapsed: () => 0, sleep: async () => {} };
    const connect = (): Database => ({
      transaction: async (_kind, work) => {
        const tables = { ...this.#committed };
        const result = await work(async (name, values = []) => this.#run(name, values, tables));
        this.#committed = tables;
        return result;
      },
      listen: () => {},
      close: async () => {},
    });
    const sealer = createSealer([]);
    return openPostgresStore(this.#options.url, { sealer, clock, connect });
  }

  /** The store as one process opens it. */
  open(by: Process): TokenStore {
    const store = openPostgresStore(this.#options.url, {
      sealer: createSealer([]),
      clock: by.clock,
      connect: () => this.#connectionOf(by),
    });
    const { observer } = this.#options;
    const reached =
      <Args extends unknown[], Result>(
        purpose: Purpose,
        call: (...args: Args) => Promise<Result>,
      ) =>
      async (...args: Args): Promise<Result> => {
        await by.reach(purpose);
        try {
          return await call(...args);
        } catch (error) {
          if (this.isDown || by.isCutOff) observer.onUnavailable(purpose);
          throw error;
        }
      };
    const read = async () => {
      const stored = await store.read();
      if (stored) observer.remember(by, stored.pair.refreshToken);
      return stored;
    };
    return {
      ...store,
      read: reached('read', read),
      claim: reached('claim', store.claim),
      save: reached('save', store.save),
      endAttempt: reached('endAttempt', store.endAttempt),
      moveOut: reached('move', store.moveOut),
      moveBack: reached('move', store.moveBack),
      moveIn: reached('import', store.moveIn),
    };
  }

  /** Whether it has a set, or had one. */
  get isUsed(): boolean {
    return this.#isUsed;
  }

  /** Whether changes are not announced. */
  get isPooled(): boolean {
    return this.#options.isPooled;
  }

  /** The refresh token of the current set, and whether the set is lost: for observers. */
  look(): Look {
    const set = this.#current;
    if (!set) return { refreshToken: 'refresh-0', lost: false, isMoved: false, isInDoubt: false };
    const { attempts } = documentIn(this.#committed)!;
    const refreshToken = findHead(set)?.pair.refreshToken ?? 'refresh-0';
    const isInDoubt = attempts.some(
      ({ generation, outcome }) =>
        generation === set.head && (outcome === 'begun' || outcome === 'uncertain'),
    );
    return { refreshToken, lost: set.lost, isMoved: set.movedTo !== null, isInDoubt };
  }

  /** Continues on a standby that lacks the last commits. All connections end. */
  failOver(lost: number): void {
    this.#epoch += 1;
    const gone = this.#before.splice(Math.max(0, this.#before.length - lost));
    for (const { generation } of gone) {
      if (generation !== undefined) this.forgotten.add(generation);
    }
    if (gone[0]) this.#committed = gone[0].tables;
    if (this.#writer) this.#abort(this.#writer);
    this.#options.observer.onFailover(gone.length);
    this.#endSessions();
  }

  /** All listeners lose their connection, and look when they are connected again. */
  #endSessions(): void {
    const { time, chance, isPooled } = this.#options;
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    if (isPooled) return;
    for (const [by, onChange] of listeners) {
      const connect = () => {
        if (by.isDead) return;
        // Still down, or cut off: once more.
        if (this.isDown || by.isCutOff) return void time.after(RECONNECTED_MS.most, connect);
        this.#listeners.set(by, onChange);
        by.run(onChange);
      };
      time.after(chance.between(RECONNECTED_MS.least, RECONNECTED_MS.most), connect);
    }
  }

  /** The end of a process ends its connections, and with them its transaction. */
  disconnect(by: Process): void {
    this.#listeners.delete(by);
    if (this.#writer?.by === by) this.#abort(this.#writer);
  }

  #connectionOf(by: Process): Database {
    return {
      transaction: (_kind, work) => this.#transact(by, work),
      listen: (onChange) => {
        this.#listeners.set(by, onChange);
        this.#options.time.after(5, () => by.run(onChange));
      },
      close: async () => void this.#listeners.delete(by),
    };
  }

  async #transact<Result>(by: Process, work: (run: Run) => Promise<Result>): Promise<Result> {
    await by.outside(() => this.#connect(by));
    const session: Session = { by, epoch: this.#epoch, tables: this.#committed, done: new Set() };
    const lockFirst: Run = async (name, values) => {
      if (this.#writer !== session) await by.outside(() => this.#lock(session));
      return run(name, values);
    };
    const run: Run = (name, values = []) => {
      session.done.add(name);
      return Promise.resolve(this.#run(name, values, session.tables));
    };
    try {
      const result = await work((name, values) =>
        name === 'lockStore' || name === 'lockCreation'
          ? lockFirst(name, values)
          : run(name, values),
      );
      const about = this.#aboutOf(session);
      await by.outside(() => this.#commit(session, about));
      await by.reach(`${about.purpose} committed`);
      return result;
    } finally {
      this.#release(session);
    }
  }

  async #connect(by: Process): Promise<void> {
    const { time, chance } = this.#options;
    await time.sleep(chance.between(1, 8));
    if (!this.isDown && !by.isCutOff) return;
    // A refused connection fails at once, a host that is gone does not.
    if (chance.number() < 0.3) await time.sleep(CONNECT_MS);
    throw new StoreUnavailableError('nothing listens at the address of the database server');
  }

  /** Writers take turns. A process that stops in the middle of its transaction loses its turn. */
  async #lock(session: Session): Promise<void> {
    if (this.#writer) {
      const turn = Promise.withResolvers<void>();
      this.#waiting.push(turn.resolve);
      this.#options.time.after(STATEMENT_MS, () =>
        turn.reject(new StoreUnavailableError('canceling statement due to statement timeout')),
      );
      await turn.promise;
      if (this.#writer) return this.#lock(session);
    }
    this.#writer = session;
    session.tables = { ...this.#committed };
    session.idle = this.#options.time.after(IDLE_MS, () => this.#abort(session));
  }

  #abort(session: Session): void {
    session.epoch = -1;
    this.#release(session);
  }

  #release(session: Session): void {
    if (this.#writer !== session) return;
    this.#writer = undefined;
    session.idle!.cancelled = true;
    for (const next of this.#waiting.splice(0)) next();
  }

  #run(name: StatementName, values: readonly Value[], tables: Tables): Row[] {
    const { time } = this.#options;
    const rows = execute(name, values, tables, BEGINNING + this.ahead + time.now);
    if (name !== 'readLayout' && name !== 'lockStore') return rows;
    return rows.map((row) => ({ ...row, era: String(this.#epoch) }));
  }

  #aboutOf({ done, tables }: Session): About {
    const isChanged = tables !== this.#committed && done.has('writeDocument');
    if (!isChanged) return aboutOf(done, undefined, undefined);
    return aboutOf(done, documentIn(this.#committed), documentIn(tables));
  }

  async #commit(session: Session, about: About): Promise<void> {
    const { purpose } = about;
    const { time, chance, observer } = this.#options;
    if (purpose !== 'read') await time.sleep(chance.between(1, 15));
    const at = this.interruptions.findIndex((interruption) => interruption.purpose === purpose);
    const what = at < 0 ? undefined : this.interruptions.splice(at, 1)[0]!.what;
    // A replica whose call fails may be too late for the others.
    if (what !== undefined) observer.onDisturbance(session.by);
    const isCut = this.isDown || session.by.isCutOff || session.epoch !== this.#epoch;
    if (isCut || what === 'not committed' || what === 'hangs') {
      this.#abort(session);
      if (what === 'hangs') await time.sleep(ANSWER_MS);
      throw new StoreUnavailableError('Connection terminated unexpectedly');
    }
    if (purpose === 'read') return;
    if (purpose === 'ask') return this.#announce();
    if (this.isFull) {
      observer.onFull(purpose);
      throw new StoreUnavailableError('could not extend file: No space left on device');
    }
    // The standby has everything from before the first refresh.
    if (purpose === 'prepare' || purpose === 'import') this.#before.length = 0;
    else this.#before.push({ tables: this.#committed, generation: about.generation });
    if (this.#before.length > MOST_LOST) this.#before.shift();
    this.#committed = session.tables;
    this.#isUsed ||= purpose === 'import';
    this.#release(session);
    observer.onCommit(session.by, about);
    this.#announce();
    if (what !== undefined) observer.onInterruption(what);
    if (what === 'committed, goes down') this.#goDown();
    if (what === 'committed, hangs') await time.sleep(ANSWER_MS);
    if (what !== undefined) throw new StoreUnavailableError('Connection terminated unexpectedly');
    await time.sleep(chance.between(1, 15));
  }

  #goDown(): void {
    const { time, observer } = this.#options;
    this.isDown = true;
    time.after(DOWN_MS, () => {
      this.isDown = false;
      observer.onDisturbance();
    });
  }

  #announce(): void {
    const { time, chance, isPooled } = this.#options;
    if (isPooled) return;
    for (const [listener, onChange] of this.#listeners) {
      time.after(chance.between(1, 30), () => listener.run(onChange));
    }
  }
}

interface Look {
  readonly refreshToken: string;
  readonly lost: boolean;
  readonly isMoved: boolean;
  readonly isInDoubt: boolean;
}

interface Session {
  readonly by: Process;
  /** When it began; -1 when its transaction was ended. */
  epoch: number;
  tables: Tables;
  /** The server ends a transaction that does nothing for this long. */
  idle?: { cancelled: boolean };
  readonly done: Set<StatementName>;
}
