import pino, { type Logger } from 'pino';
import type { TokenLink } from '../../src/tokens/token-import.ts';
import { TokenLinkError } from '../../src/tokens/service/token-link.ts';
import type { TokenStore } from '../../src/tokens/store/token-store.ts';
import { chanceFrom } from './chance.ts';
import { SimulatedServer } from './database.ts';
import { mountDisk, unmountAll } from './disks.ts';
import { seedEntropy } from './entropy.ts';
import { Observer } from './observer.ts';
import type { Flaw } from './flaws.ts';
import { isOfMove, SetMove } from './move.ts';
import type { Plan, Step } from './plan.ts';
import { Process, type Machine, type Trap } from './process.ts';
import type { Row } from './rows.ts';
import { Service, type Oddity } from './service.ts';
import { VirtualTime } from './virtual-time.ts';

/** The result of a plan. */
export interface History {
  /** The promises that were broken, and when; empty if none was. */
  readonly violations: readonly string[];
  /** Everything that happened, a line each. */
  readonly lines: readonly string[];
  readonly rows: ReadonlyMap<Row, number>;
}

/** How long the replicas may take to recover after the last fault. */
const RECOVERY_MS = 45 * 60_000;
/** A pair of unknown lifetimes is refreshed by then. */
const MOST_OF_A_DAY_MS = 17 * 60 * 60_000;
const LOOK_EVERY_MS = 20_000;

/**
 * Runs a plan. The same plan gives the same history, line by line.
 *
 * @param flaw the part that is broken on purpose
 */
export async function runPlan(plan: Plan, flaw?: Flaw): Promise<History> {
  const world = new World(plan, flaw);
  try {
    await world.begin();
    for (const step of plan.early) await world.take(step);
    await world.start();
    for (const step of plan.steps) await world.take(step);
    await world.recover();
    world.expectFewExchanges(plan);
  } finally {
    world.end();
  }
  const { violations, lines, rows } = world.observer;
  return { violations, lines, rows };
}

class World {
  readonly observer: Observer;
  readonly #plan: Plan;
  readonly #flaw: Flaw | undefined;
  readonly #time = new VirtualTime();
  readonly #machines: readonly Machine[];
  readonly #service: Service;
  readonly #source: SimulatedServer;
  readonly #target: SimulatedServer;
  readonly #move: SetMove;
  readonly #random: () => number;
  readonly #log: Logger;
  readonly #traps: Trap[] = [];

  constructor(plan: Plan, flaw: Flaw | undefined) {
    this.#flaw = flaw;
    const chance = chanceFrom(plan.seed);
    this.#plan = plan;
    this.#random = chance.number;
    seedEntropy(plan.seed);
    unmountAll();
    this.#machines = Array.from({ length: plan.replicas }, (_, index) =>
      newMachine(`machine-${index + 1}`, true),
    );
    const time = this.#time;
    const observer = (this.observer = new Observer(time, this.#machines));
    const write = (line: string) => observer.expectNoSecret(line);
    this.#log = pino({ level: 'debug', base: null, timestamp: false }, { write });
    const { life, revokesOnRefresh, refusesEarly, ahead, isPooled } = plan;
    const ways = { life, revokesOnRefresh, refusesEarly };
    this.#service = new Service({ time, chance, observer, ...ways });
    const server = (name: string) =>
      new SimulatedServer({
        time,
        chance,
        observer,
        ahead,
        isPooled,
        url: `postgres://${name}/tokens`,
      });
    this.#source = server('database');
    this.#target = server('target');
    observer.service = this.#service;
    observer.databases = [this.#source, this.#target];
    this.#move = new SetMove({
      time,
      observer,
      source: this.#source,
      target: this.#target,
      traps: this.#traps,
      newCommand: (openStore) => this.#newProcess(newMachine('office', false), openStore),
      onMoved: () => {
        for (const machine of this.#machines) {
          time.after(chance.between(0, 5_000), () => void this.#restart(machine));
        }
      },
    });
  }

  async begin(): Promise<void> {
    const { fromLink, isPooled } = this.#plan;
    if (isPooled) this.observer.met('behind a transaction pooler');
    if (!fromLink) await this.#source.begin(this.#service.firstPair);
  }

  async start(): Promise<void> {
    for (const machine of this.#machines) this.#start(machine);
    await this.#time.pass(1_000);
  }

  async take(step: Step): Promise<void> {
    await this.#time.pass(step.after);
    this.observer.note(`step: ${JSON.stringify(step)}`);
    const machine = 'by' in step ? this.#machines[step.by % this.#machines.length] : undefined;
    this.#do(step, machine!);
    await this.#time.pass(150);
  }

  #do(step: Step, machine: Machine): void {
    const { observer } = this;
    const { database, databases } = observer;
    switch (step.do) {
      case 'meet':
        return void this.#meet(step.oddity);
      case 'ask':
        if (step.times > 10) observer.met('many callers meet an expired token at once');
        if (step.times > 10) this.#service.expire();
        return this.#ask(machine.process, step.times);
      case 'kill':
        return machine.process?.kill();
      case 'terminate':
        return void machine.process?.terminate();
      case 'start':
        return this.#start(machine);
      case 'stop':
        return machine.process?.stopFor(step.forMs);
      case 'trap':
        this.#traps.push(step.trap);
        return void this.#meet(step.oddity);
      case 'interrupt':
        return void database.interruptions.push(
          ...Array.from({ length: step.times }, () => step.interruption),
        );
      case 'cutOff':
        return machine.process?.cutOffFor(step.forMs);
      case 'databaseDown':
        return this.#during(step.forMs, (is) => databases.forEach((each) => (each.isDown = is)));
      case 'databaseFull':
        return this.#during(step.forMs, (is) => databases.forEach((each) => (each.isFull = is)));
      case 'unreachable':
        observer.met('the service is unreachable');
        return this.#during(step.forMs, (is) => (this.#service.isUnreachable = is));
      case 'blocked':
        observer.met('the administrator is blocked');
        return this.#during(step.forMs, (is) => (this.#service.isBlocked = is));
      case 'move':
        return this.#move.begin(step);
      case 'failOver':
        if (this.#isKeptSafe(database)) return;
        return database.failOver(step.lost);
      case 'olderCopy':
        if (this.#isKeptSafe(database)) return;
        observer.met('an older copy is put under running replicas, and another one starts on it');
        machine.process?.kill();
        database.failOver(step.lost);
        this.#start(machine);
        return void this.#time.after(step.askAfterMs, () => {
          this.#service.expire();
          this.#ask(machine.process, 1);
        });
      case 'damage':
        if (this.#hasMove) return;
        return database.damage(step.what);
      case 'restoreBackup':
        if (this.#isKeptSafe(database)) return;
        for (const { process } of this.#machines) process?.kill();
        observer.met('an old backup is restored, all processes being down');
        return database.failOver(step.lost);
      case 'disk':
        observer.met('the rescue folder cannot be written');
        return this.#during(step.forMs, (is) => (machine.disk[step.state] = is));
      case 'clock':
        observer.met('a wall clock jumps');
        return void (machine.ahead += step.ms);
      case 'databaseClock':
        observer.met('the clock of the database is set back');
        return databases.forEach((each) => (each.ahead += step.ms));
    }
  }

  /** That the set was moved away must not be forgotten: then it would have two owners, and no client can know. */
  #isKeptSafe(database: SimulatedServer): boolean {
    return database === this.#source && this.#hasMove;
  }

  /** A store that a set was moved to is damaged only where no gateway can heal it yet. */
  get #hasMove(): boolean {
    return this.#plan.steps.some((step) => step.do === 'move');
  }

  /** With the store that the set was moved to. */
  async #restart(machine: Machine): Promise<void> {
    machine.process?.wake();
    await machine.process?.terminate();
    this.#start(machine);
  }

  /** They use the newest token first: one that never worked is not refreshed in the first half of its life. */
  async #meet(oddity: Oddity | null): Promise<void> {
    if (oddity) this.#service.oddities.push(oddity);
    for (const { process } of this.#machines) this.#ask(process, 1);
    await this.#time.sleep(60);
    this.observer.met('all replicas meet an expired token at once');
    this.#service.expire();
    for (const { process } of this.#machines) this.#ask(process, 1);
  }

  #during(ms: number, set: (is: boolean) => void): void {
    const change = (is: boolean) => {
      set(is);
      this.observer.onDisturbance();
    };
    change(true);
    this.#time.after(ms, () => change(false));
  }

  #ask(process: Process | undefined, times: number): void {
    for (let time = 0; time < times; time += 1) void process?.ask();
  }

  #start(machine: Machine): void {
    if (machine.process) return;
    const wasRescued = [...machine.disk.files].some(
      ([path, { bytes }]) => path.includes('/rescue-') && bytes[0] !== 0x20,
    );
    if (wasRescued) this.observer.met('a rescue file is saved by the next start');
    const store = this.#move.isDone ? this.#target : this.#source;
    const process = this.#newProcess(machine, (by) => store.open(by));
    this.observer.note(`${process.name} starts`);
    void process.start();
  }

  #newProcess(machine: Machine, openStore: (by: Process) => TokenStore): Process {
    return new Process(machine, {
      time: this.#time,
      service: this.#service,
      observer: this.observer,
      link: this.#plan.fromLink ? this.#link : undefined,
      random: this.#random,
      log: this.#log,
      traps: this.#traps,
      flaw: this.#flaw,
      fillUp: (at, ms) => {
        const { databases } = this.observer;
        this.#during(ms, (is) => databases.forEach((database) => (database.isFull = is)));
        this.#during(ms, (is) => (at.disk.broken = is));
      },
      openStore,
    });
  }

  readonly #link: TokenLink = {
    url: 'https://recruiting.test/links/1',
    read: async () => {
      await this.#time.sleep(30);
      const { exchanges, firstPair } = this.#service;
      if (exchanges.some(({ gave }) => gave)) throw new TokenLinkError('The link is dead.', false);
      return firstPair;
    },
  };

  /**
   * Ends all faults but those of a move that is not done, starts what is not running, and waits until all replicas serve,
   * or report honestly that they cannot.
   */
  async recover(): Promise<void> {
    this.observer.note('all faults end');
    this.#service.oddities.length = 0;
    for (const database of this.observer.databases) {
      keep(database.interruptions, isOfMove);
      Object.assign(database, { isDown: false, isFull: false });
    }
    keep(this.#traps, isOfMove);
    this.#service.isBlocked = false;
    this.#service.isUnreachable = false;
    for (const machine of this.#machines) {
      Object.assign(machine, { isCutOff: false });
      Object.assign(machine.disk, { full: false, broken: false });
      if (!machine.process) continue;
      machine.process.wake();
    }
    let end = this.#time.now + RECOVERY_MS;
    let codes: (string | undefined)[] = [];
    let looks = 0;
    let hasMet = false;
    while (this.#time.now < end) {
      for (const machine of this.#machines) this.#start(machine);
      await this.#time.pass(LOOK_EVERY_MS);
      codes = await this.#askAll();
      if (this.#isWell(codes)) return;
      // Gateways and starts tell the operator what to run.
      await this.observer.database.repair();
      // A refresh between two tries of a move.
      if (this.#move.isWanted && !hasMet) void this.#meet(null);
      hasMet = true;
      // A revoked token, or a new one that never worked, is not refreshed before its time.
      if (codes.includes('UPSTREAM_UNAUTHORIZED') && looks++ === 30) {
        await this.#time.pass(MOST_OF_A_DAY_MS);
        end += MOST_OF_A_DAY_MS;
      }
    }
    const { refreshToken, lost } = this.observer.database.look();
    this.observer.violations.push(
      `after ${RECOVERY_MS / 60_000} minutes the replicas answer ${codes.join(', ')}; ` +
        `the store has ${refreshToken}${lost ? ' (lost)' : ''}, ` +
        `the service accepts ${this.#service.live.refreshToken}`,
    );
  }

  /** A few exchanges for each step, and for each life of an access token. */
  expectFewExchanges({ early, steps, life }: Plan): void {
    const { length } = this.#service.exchanges;
    const most = 4 + 4 * (early.length + steps.length) + (3 * this.#time.now) / (life * 1000);
    if (length > most) this.observer.violations.push(`${length} exchanges are too many`);
  }

  #isWell(codes: readonly (string | undefined)[]): boolean {
    const stored = this.observer.database.look();
    const { refreshToken } = this.#service.live;
    const isLost = codes.every((code) => code === 'TOKENS_LOST');
    if (isLost && !this.observer.isKept(refreshToken)) {
      this.observer.met('said to be lost');
      return true;
    }
    // Then only a new token helps, and a start says so.
    if (this.observer.wasDamaged && !this.observer.isKept(refreshToken)) return true;
    const isSafe = !this.#move.isWanted && stored.refreshToken === refreshToken;
    return isSafe && codes.every((code) => code === undefined);
  }

  async #askAll(): Promise<(string | undefined)[]> {
    const answers = this.#machines.map(
      ({ process }) => process?.ask() ?? Promise.resolve('not running'),
    );
    let codes: (string | undefined)[] | undefined;
    void Promise.all(answers).then((all) => (codes = all));
    await this.#time.pass(LOOK_EVERY_MS, () => codes !== undefined);
    return codes ?? ['no answer'];
  }

  /** Nothing of this history may continue in the next one. */
  end(): void {
    for (const { process } of this.#machines) process?.kill();
    this.#time.end();
  }
}

function newMachine(name: string, hasGateway: boolean): Machine {
  const disk = mountDisk(`/${name}`);
  return { name, hasGateway, disk, ahead: 0, isCutOff: false, process: undefined, starts: 0 };
}

function keep<T>(list: T[], isKept: (item: T) => boolean): void {
  list.splice(0, list.length, ...list.filter(isKept));
}
