import type { Logger } from 'pino';
import { codeOf } from '../../../src/errors.ts';
import type { Emergency } from '../../../src/tokens/emergency.ts';
import type { TokenParts } from '../../../src/tokens/holder.ts';
import { TokenKeeper } from '../../../src/tokens/keeper.ts';
import type { State } from '../../../src/tokens/state.ts';
import { settled, sleepIn, type VirtualTime } from './virtual-time.ts';
import { BEGINNING, type Database } from './database.ts';
import type { Observer } from './observer.ts';
import type { Service } from './service.ts';

export const SERVICE_URL = 'https://recruiting.test';

/** Moments at which a fault can hit a process: before these calls, and between a commit and its answer. */
export const POINTS = [
  'read',
  'claim',
  'claim committed',
  'connect',
  'send',
  'answer',
  'emergency file',
  'save',
  'save committed',
  'end',
] as const;

/** What happens, after a delay, to the process that reaches a point first. */
export interface Trap {
  readonly point: (typeof POINTS)[number];
  readonly effect: 'kill' | 'stop' | 'terminate' | 'cutOff' | 'noRoom';
  readonly delayMs: number;
  /** How long it is stopped or cut off, or nothing can be written. */
  readonly forMs: number;
}

/** A folder for emergency files; several machines may share one. */
export class Folder {
  readonly files = new Map<string, State>();
  /** The refresh tokens that it was too full for. */
  readonly missing = new Set<string>();
  isFull = false;
}

/** One computer, on which one gateway runs at a time. */
export interface Machine {
  readonly name: string;
  readonly folder: Folder;
  /** It cannot reach the database. */
  isCutOff: boolean;
  process: Process | undefined;
  starts: number;
}

export interface Surroundings {
  readonly time: VirtualTime;
  readonly service: Service;
  readonly database: Database;
  readonly observer: Observer;
  readonly traps: Trap[];
  readonly log: Logger;
  /** Neither the database nor the folder of the machine can be written. */
  fillUp(machine: Machine, ms: number): void;
}

/** A gateway, as far as tokens are concerned: it can be killed, stopped, woken and terminated at any moment. */
export class Process {
  readonly name: string;
  readonly machine: Machine;
  isDead = false;
  isStopped = false;
  isTerminated = false;
  wokenAt = 0;
  /** The point that it reached last. */
  point = '';
  keeper: TokenKeeper | undefined;
  readonly #surroundings: Surroundings;
  /** Events that arrived while it was stopped. */
  readonly #inbox: (() => void)[] = [];

  constructor(machine: Machine, surroundings: Surroundings) {
    machine.starts += 1;
    machine.process = this;
    this.machine = machine;
    this.name = `${machine.name}/${machine.starts}`;
    this.#surroundings = surroundings;
  }

  async start(): Promise<void> {
    const { time, service, database, observer, log } = this.#surroundings;
    const parts: TokenParts = {
      store: database.open(this),
      service: service.of(this),
      emergency: this.#emergency(),
      serviceUrl: SERVICE_URL,
      // Two containers can have the same host name and process id.
      by: 'host/1',
      meansExpired: (detail) => detail === 'token_expired',
      clock: {
        now: () => BEGINNING + time.now,
        elapsed: () => time.now,
        sleep: sleepIn(time, (next) => this.run(next)),
        timer: () => () => {},
      },
      log,
    };
    try {
      const keeper = new TokenKeeper(parts);
      await keeper.open();
      this.keeper = keeper;
    } catch (error) {
      observer.note(`${this.name} cannot start: ${(error as Error).message}`);
      this.kill();
    }
  }

  #emergency(): Emergency {
    const { folder } = this.machine;
    return {
      pathOf,
      put: (received) => {
        void this.reach('emergency file');
        if (this.isDead) return false;
        if (folder.isFull) {
          folder.missing.add(received.pair.refreshToken);
          return false;
        }
        folder.files.set(pathOf(received), received);
        return true;
      },
      read: () => [...folder.files].map(([path, received]) => ({ path, received })),
      remove: (path) => {
        if (this.isDead) return;
        const file = folder.files.get(path);
        folder.files.delete(path);
        if (file) this.#surroundings.observer.onRemoved(this, file);
      },
    };
  }

  /** Continues with what has arrived, when it runs; never if it is dead. */
  run(next: () => void): void {
    if (this.isDead) return;
    if (this.isStopped) this.#inbox.push(next);
    else next();
  }

  /** Something that happens outside of the process, which learns of it only while it runs. */
  async outside<T>(work: () => Promise<T>, point?: string): Promise<T> {
    if (point !== undefined) await this.reach(point);
    if (this.isDead) return never;
    return new Promise((resolve, reject) => {
      work().then(
        (value) => this.run(() => resolve(value)),
        (error: unknown) => this.run(() => reject(error)),
      );
    });
  }

  /** Reaches a point; does not return if the process is dead then, or returns only when it is woken. */
  async reach(point: string): Promise<void> {
    const { traps } = this.#surroundings;
    if (!this.isDead) this.point = point;
    const at = traps.findIndex((trap) => trap.point === point);
    if (at >= 0 && !this.isDead) this.#befall(traps.splice(at, 1)[0]!);
    if (this.isDead) await never;
    await this.#awake();
  }

  /** Does not return before the process is woken, if it is stopped. */
  async #awake(): Promise<void> {
    if (this.isStopped) await new Promise<void>((resolve) => void this.#inbox.push(resolve));
  }

  #befall({ point, effect, delayMs, forMs }: Trap): void {
    const happen = () => {
      if (this.isDead) return;
      this.#surroundings.observer.note(`${this.name} is at: ${point}`);
      if (effect === 'kill') this.kill();
      else if (effect === 'stop') this.stopFor(forMs);
      else if (effect === 'cutOff') this.cutOffFor(forMs);
      else if (effect === 'noRoom') this.#surroundings.fillUp(this.machine, forMs);
      else void this.terminate();
    };
    if (delayMs === 0) happen();
    else this.#surroundings.time.after(delayMs, happen);
  }

  /** As kill -9 does. */
  kill(): void {
    if (this.isDead) return;
    this.isDead = true;
    this.#inbox.length = 0;
    if (this.machine.process === this) this.machine.process = undefined;
    this.#surroundings.observer.onDeath(this);
  }

  /** As SIGSTOP does, and SIGCONT after a while. */
  stopFor(ms: number): void {
    if (this.isDead || this.isStopped) return;
    const { time, observer } = this.#surroundings;
    this.isStopped = true;
    observer.note(`${this.name} is stopped for ${ms / 1000} s`);
    time.after(ms, () => this.wake());
  }

  wake(): void {
    if (!this.isStopped) return;
    this.isStopped = false;
    this.wokenAt = this.#surroundings.time.now;
    this.#surroundings.observer.note(`${this.name} is woken`);
    for (const next of this.#inbox.splice(0)) this.run(next);
  }

  cutOffFor(ms: number): void {
    this.machine.isCutOff = true;
    this.#surroundings.time.after(ms, () => (this.machine.isCutOff = false));
  }

  /** As SIGTERM does. */
  async terminate(): Promise<void> {
    if (this.isDead || this.isTerminated) return;
    if (!this.keeper) return this.kill();
    this.isTerminated = true;
    this.#surroundings.observer.note(`${this.name} is asked to end`);
    await this.keeper.close();
    if (this.isDead) return;
    this.#surroundings.observer.onClosed(this);
    this.kill();
  }

  /** A request of a caller, as upstream makes it; returns the code of its error, or undefined. */
  async ask(): Promise<string | undefined> {
    await this.#awake();
    if (this.isDead || !this.keeper) return 'not running';
    try {
      return await this.#ask(this.keeper);
    } catch (error) {
      this.#surroundings.observer.onError(this, error);
      return String(codeOf(error) ?? error);
    }
  }

  async #ask(keeper: TokenKeeper): Promise<string | undefined> {
    const { service, observer } = this.#surroundings;
    let token = await keeper.token();
    for (let replays = 0; ; replays += 1) {
      observer.onUse(this, token.value);
      await settled();
      const verdict = service.judge(token.value);
      if (verdict.kind === 'works') {
        keeper.accepted(token);
        return undefined;
      }
      if (verdict.kind === 'unclear') return 'UPSTREAM_UNREACHABLE';
      const next = await keeper.afterRefusal(token, verdict.detail, replays);
      if (!next) {
        keeper.refused(token);
        return 'UPSTREAM_UNAUTHORIZED';
      }
      token = next;
    }
  }
}

function pathOf({ id, generation }: Pick<State, 'id' | 'generation'>): string {
  return `${id}-${generation}`;
}

const never = new Promise<never>(() => {});
