import type { Rule, State } from '../../../src/tokens/state.ts';
import { StoreUnavailable, type TokenStore } from '../../../src/tokens/store.ts';
import type { Chance, VirtualTime } from './virtual-time.ts';
import type { Observer } from './observer.ts';
import type { Process } from './process.ts';

/** What a transaction does, as its states show it. */
export const KINDS = ['read', 'claim', 'save', 'end'] as const;
export type Kind = (typeof KINDS)[number];

export const BEGINNING = Date.UTC(2026, 0, 1);

/** Returns what a rule did. */
function kindOf(before: State | null, next: State | undefined): Kind {
  if (!next) return 'read';
  const event = next.events[0];
  if (event !== before?.events[0]) {
    if (event?.what === 'saved') return 'save';
    return 'end';
  }
  return next.claim?.attempt === before?.claim?.attempt ? 'end' : 'claim';
}

/** A database that replicas share: it keeps every commit, so that it can lose the last ones. */
export class Database {
  state: State | null = null;
  isDown = false;
  isFull = false;
  /** The next transactions of these kinds whose connection is lost after the commit. */
  readonly unanswered: Kind[] = [];
  readonly #commits: (State | null)[] = [null];
  readonly #time: VirtualTime;
  readonly #chance: Chance;
  readonly #observer: Observer;

  constructor(parts: { time: VirtualTime; chance: Chance; observer: Observer }) {
    this.#time = parts.time;
    this.#chance = parts.chance;
    this.#observer = parts.observer;
  }

  get now(): number {
    return BEGINNING + this.#time.now;
  }

  open(by: Process): TokenStore {
    return {
      description: 'postgres://database/tokens',
      read: () =>
        by.outside(async () => {
          await this.#call(by);
          return { state: this.state, now: this.now };
        }, 'read'),
      update: (rule) => {
        const once = () => this.#update(by, rule);
        return once().catch((error: unknown) => {
          if (error instanceof StoreUnavailable) return once();
          throw error;
        });
      },
    };
  }

  async #update<T>(by: Process, rule: Rule<T>): Promise<T> {
    const expected = kindOf(this.state, rule(this.state, this.now).next);
    const { result, kind } = await by.outside(async () => {
      await this.#call(by);
      const done = rule(this.state, this.now);
      const kindDone = kindOf(this.state, done.next);
      if (done.next) {
        if (this.isFull) throw new StoreUnavailable('the disk of the database is full');
        if (!by.isDead) this.#commit(by, kindDone, done.next);
      }
      const at = this.unanswered.indexOf(kindDone);
      if (at >= 0) {
        this.unanswered.splice(at, 1);
        throw new StoreUnavailable('the connection was lost');
      }
      await this.#time.sleep(this.#chance.between(1, 5));
      return { result: done.result, kind: kindDone };
    }, expected);
    await by.reach(`${kind} committed`);
    return result;
  }

  async #call(by: Process): Promise<void> {
    await this.#time.sleep(this.#chance.between(1, 5));
    if (this.isDown || by.machine.isCutOff) throw new StoreUnavailable('it cannot be reached');
  }

  #commit(by: Process, kind: Kind, next: State): void {
    this.state = next;
    this.#commits.push(next);
    this.#observer.onCommit(by, kind, next);
  }

  /** Without a process, as an administrator writes it. */
  put<T>(rule: Rule<T>): void {
    const { next } = rule(this.state, this.now);
    if (next) this.#commits.push((this.state = next));
  }

  /** Loses the last commits, as a failover or an older copy does. */
  goBack(lost: number): void {
    const before = this.state;
    const kept = this.#commits.slice(0, Math.max(2, this.#commits.length - lost));
    this.#commits.splice(0, Infinity, ...kept);
    this.state = kept.at(-1) ?? null;
    this.#observer.onGoneBack(before, this.state);
  }

  /** Its row or its table is removed. */
  empty(): void {
    const before = this.state;
    this.#commits.push((this.state = null));
    this.#observer.onGoneBack(before, null);
  }
}
