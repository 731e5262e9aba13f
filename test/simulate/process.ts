import type { Logger } from 'pino';
import type { Clock } from '../../src/clock.ts';
import { codeOf } from '../../src/errors.ts';
import {
  createTokenKeeper,
  type TokenKeeper,
  type TokenKeeperParts,
} from '../../src/tokens/token-keeper.ts';
import type { TokenLink } from '../../src/tokens/token-import.ts';
import { moveSet } from '../../src/tokens/token-move.ts';
import { boundStore, type TokenStore } from '../../src/tokens/store/token-store.ts';
import { openRescue, type Rescue } from '../../src/tokens/store/rescue.ts';
import { createSealer } from '../../src/tokens/store/seal.ts';
import { BASE_URL, BEGINNING } from './database.ts';
import type { Disk } from './disks.ts';
import type { Flaw } from './flaws.ts';
import type { Observer } from './observer.ts';
import type { Service } from './service.ts';
import { setImmediate } from './turns.ts';
import type { VirtualTime } from './virtual-time.ts';

/** Moments at which a fault can hit a process: before these calls, and between a commit and its answer. */
export const POINTS = [
  'connect',
  'read',
  'claim',
  'claim committed',
  'send',
  'answer',
  'save',
  'save committed',
  'endAttempt',
  'rescue write',
] as const;
export type Point = (typeof POINTS)[number] | 'move committed';

/** What happens, after a delay, to the process that reaches a point first. */
export interface Trap {
  readonly point: Point;
  readonly effect: 'kill' | 'stop' | 'terminate' | 'cutOff' | 'noRoom' | 'strand';
  readonly delayMs: number;
  /** How long it is stopped, or cut off from the database, or nothing can be written. */
  readonly forMs: number;
}

/** One computer with a disk and a wall clock, on which one process runs at a time. */
export interface Machine {
  readonly name: string;
  /** A gateway runs on it; otherwise commands do. */
  readonly hasGateway: boolean;
  readonly disk: Disk;
  /** How far its wall clock is ahead, ms. */
  ahead: number;
  /** The gateway cannot reach the database. */
  isCutOff: boolean;
  process: Process | undefined;
  starts: number;
}

export interface Surroundings {
  readonly time: VirtualTime;
  readonly service: Service;
  readonly observer: Observer;
  readonly link: TokenLink | undefined;
  readonly traps: Trap[];
  /** The part that is broken on purpose. */
  readonly flaw: Flaw | undefined;
  readonly random: () => number;
  readonly log: Logger;
  openStore(by: Process): TokenStore;
  /** Neither the database nor the disk of the machine can be written. */
  fillUp(machine: Machine, ms: number): void;
}

const STRANDED_MS = 3_000;

/** A gateway process, as far as tokens are concerned: it can be killed, stopped, woken and terminated at any moment. */
export class Process {
  readonly name: string;
  readonly machine: Machine;
  isDead = false;
  isStopped = false;
  isTerminated = false;
  /** The point that it reached last, and when. */
  last: { point: string; at: number } | undefined;
  readonly #surroundings: Surroundings;
  /** Events that arrived while it was stopped. */
  readonly #inbox: (() => void)[] = [];
  readonly #failuresBefore: number;
  readonly clock: Clock;
  readonly startedAt: number;
  #wakes = 0;
  #stoppedAt = 0;
  #stoppedMs = 0;
  #keeper: TokenKeeper | undefined;
  #rescue: Rescue | undefined;

  constructor(machine: Machine, surroundings: Surroundings) {
    machine.starts += 1;
    machine.process = this;
    machine.disk.onWrite = () => {
      void this.reach('rescue write');
      if (this.isDead) throw new Error('the process is dead');
    };
    this.machine = machine;
    this.#failuresBefore = machine.disk.failures;
    this.name = `${machine.name}/${machine.starts}`;
    this.#surroundings = surroundings;
    this.clock = this.#newClock();
    this.startedAt = surroundings.time.now;
  }

  /** Whether its rescue file could be created, and every write to it succeeded. */
  get hasRescueFile(): boolean {
    return this.machine.disk.failures === this.#failuresBefore;
  }

  /** How long it was stopped so far, ms. */
  get stoppedMs(): number {
    return this.#stoppedMs + (this.isStopped ? this.#surroundings.time.now - this.#stoppedAt : 0);
  }

  get isCutOff(): boolean {
    return this.machine.isCutOff;
  }

  /** Ends at once, with an error, if there is no store at the start. */
  async start(): Promise<void> {
    const { service, observer, openStore, link, random, log, flaw } = this.#surroundings;
    const owner = { host: this.machine.name, pid: this.machine.starts, lives: () => false };
    const folder = { directory: `/${this.machine.name}`, sealer: createSealer([]), owner };
    this.#rescue = openRescue(folder, log);
    try {
      const parts: TokenKeeperParts = {
        store: openStore(this),
        rescue: this.#rescue,
        connect: () => service.connect(this),
        checkAccess: (token) => service.check(this, token),
        clock: this.clock,
        log,
        link,
        baseUrl: BASE_URL,
        replica: this.name,
        random,
      };
      this.#keeper = await createTokenKeeper(flaw ? flaw(parts, this) : parts);
    } catch (error) {
      observer.note(`${this.name} cannot start: ${(error as Error).message}`);
      this.kill();
    }
  }

  #newClock(): Clock {
    const { time } = this.#surroundings;
    return {
      now: () => BEGINNING + time.now + this.machine.ahead,
      elapsed: () => time.now,
      sleep: (ms, signal) =>
        new Promise((resolve, reject) => {
          if (signal?.aborted) return reject(signal.reason as Error);
          const abort = () => {
            timer.cancelled = true;
            reject(signal?.reason as Error);
          };
          const wake = () => {
            signal?.removeEventListener('abort', abort);
            resolve();
          };
          const timer = time.after(Math.max(1, Math.ceil(ms)), () => this.run(wake));
          signal?.addEventListener('abort', abort);
        }),
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
    this.last = { point, at: this.#surroundings.time.now };
    const { traps } = this.#surroundings;
    const at = traps.findIndex((trap) => trap.point === point);
    if (at >= 0 && !this.isDead) this.#befall(traps.splice(at, 1)[0]!);
    if (this.isDead) await never;
    if (this.isStopped) await new Promise<void>((resolve) => void this.#inbox.push(resolve));
  }

  #befall({ point, effect, delayMs, forMs }: Trap): void {
    const happen = () => {
      if (this.isDead) return;
      this.#surroundings.observer.note(`${this.name} is at: ${point}`);
      if (effect === 'kill') this.kill();
      else if (effect === 'stop') this.stopFor(forMs);
      else if (effect === 'cutOff' || effect === 'strand') this.cutOffFor(forMs);
      else if (effect === 'noRoom') this.#surroundings.fillUp(this.machine, forMs);
      else void this.terminate();
      // Cut off, and killed when its pair is in the rescue file.
      if (effect === 'strand') this.#surroundings.time.after(STRANDED_MS, () => this.kill());
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
    this.isStopped = true;
    this.#stoppedAt = this.#surroundings.time.now;
    this.#wakes += 1;
    const wake = this.#wakes;
    this.#surroundings.observer.onStop(this, ms);
    this.#surroundings.time.after(ms, () => {
      if (wake === this.#wakes) this.wake();
    });
  }

  wake(): void {
    if (!this.isStopped) return;
    this.isStopped = false;
    this.#stoppedMs += this.#surroundings.time.now - this.#stoppedAt;
    this.#surroundings.observer.note(`${this.name} is woken`);
    this.#surroundings.observer.onDisturbance(this);
    for (const next of this.#inbox.splice(0)) this.run(next);
  }

  /** Its machine cannot reach the database. */
  cutOffFor(ms: number): void {
    this.#surroundings.observer.met('a replica is cut off from the database');
    const { time, observer } = this.#surroundings;
    observer.onDisturbance(this);
    this.machine.isCutOff = true;
    time.after(ms, () => {
      this.machine.isCutOff = false;
      if (this.machine.process) observer.onDisturbance(this.machine.process);
    });
  }

  /** As SIGTERM does. */
  async terminate(): Promise<void> {
    if (this.isDead || this.isTerminated) return;
    if (!this.#keeper) return this.kill();
    this.isTerminated = true;
    this.#surroundings.observer.onTermination(this);
    await this.#keeper.stop();
    if (this.isDead) return;
    this.#surroundings.observer.onStopped(this);
    await this.#rescue?.close();
    this.kill();
  }

  /** Moves the set, as the command does; whether it is moved then. */
  async move(source: TokenStore, target: TokenStore): Promise<boolean> {
    const [from, to] = [source, target].map((store) => boundStore(store, this.clock));
    try {
      const stored = await from!.read();
      if (stored) await moveSet(from!, to!, stored, { replica: this.name });
      return stored !== null;
    } catch (error) {
      this.#surroundings.observer.note(
        `${this.name} cannot move the set: ${(error as Error).message}`,
      );
      return false;
    }
  }

  /** A request of a caller, as upstream makes it; gives the code of its error, or undefined. */
  async ask(): Promise<string | undefined> {
    if (this.isDead || !this.#keeper) return 'not running';
    try {
      return await this.#ask(this.#keeper);
    } catch (error) {
      this.#surroundings.observer.onError(this, error);
      return String(codeOf(error) ?? error);
    }
  }

  async #ask(keeper: TokenKeeper): Promise<string | undefined> {
    const { service, observer } = this.#surroundings;
    let token = await keeper.accessToken();
    for (let replays = 0; replays < 3; replays += 1) {
      observer.onUse(this, token.value);
      await setImmediate();
      const verdict = service.judge(token.value);
      if (verdict.kind === 'works') {
        keeper.accepted(token);
        return undefined;
      }
      if (verdict.kind === 'unknown') return 'UPSTREAM_UNREACHABLE';
      const next = await keeper.afterRefusal(token, verdict.detail);
      if (!next) return 'UPSTREAM_UNAUTHORIZED';
      token = next;
    }
    return 'UPSTREAM_UNAUTHORIZED';
  }
}

const never = new Promise<never>(() => {});
