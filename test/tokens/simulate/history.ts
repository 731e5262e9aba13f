import fc from 'fast-check';
import pino from 'pino';
import { importPair } from '../../../src/tokens/state.ts';
import { chanceFrom, VirtualTime } from './virtual-time.ts';
import { Database } from './database.ts';
import { Observer } from './observer.ts';
import { plan as plans, type Plan, type Step } from './plan.ts';
import {
  Folder,
  Process,
  SERVICE_URL,
  type Machine,
  type Surroundings,
  type Trap,
} from './process.ts';
import { Service, type Oddity } from './service.ts';

/** How long the replicas may take to recover after the last fault. */
const RECOVERY_MS = 60 * 60_000;
const LOOK_EVERY_MS = 20_000;

/**
 * Runs random histories.
 *
 * @returns the shortest one that breaks a promise, step by step, with its seed; undefined: none does
 */
export async function brokenPromise(
  parameters: Pick<fc.Parameters<unknown>, 'seed' | 'numRuns'>,
): Promise<string | undefined> {
  const property = fc.asyncProperty(plans, async (each) => {
    // The same plan gives the same history, line by line.
    const world = new World(each);
    try {
      await world.start();
      for (const step of each.steps) await world.take(step);
      await world.recover();
      world.expectFewExchanges();
    } finally {
      world.end();
    }
    const { violations, lines } = world.observer;
    if (violations.length > 0) throw new Error([...lines, ...violations].join('\n'));
  });
  // Histories throw errors by the thousand, and only their messages are read.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    const details = await fc.check(property, {
      ...parameters,
      unbiased: true,
      includeErrorInReport: true,
    });
    return (await fc.asyncDefaultReportMessage(details)) ?? undefined;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

class World {
  readonly observer: Observer;
  readonly #plan: Plan;
  readonly #time = new VirtualTime();
  readonly #machines: readonly Machine[];
  readonly #service: Service;
  readonly #database: Database;
  readonly #surroundings: Surroundings;
  readonly #traps: Trap[] = [];

  constructor(plan: Plan) {
    this.#plan = plan;
    const chance = chanceFrom(plan.seed);
    const shared = new Folder();
    this.#machines = Array.from({ length: plan.replicas }, (_, index) => ({
      name: `machine-${index + 1}`,
      folder: plan.sharesFolder ? shared : new Folder(),
      isCutOff: false,
      process: undefined,
      starts: 0,
    }));
    const time = this.#time;
    const observer = (this.observer = new Observer(time, this.#machines));
    const { life, revokesOnRefresh, refusesEarly } = plan;
    const isMute = plan.isMute && !refusesEarly;
    const ways = { life, revokesOnRefresh, refusesEarly, isMute };
    this.#service = new Service({ time, chance, observer, ...ways });
    this.#database = new Database({ time, chance, observer });
    observer.service = this.#service;
    observer.database = this.#database;
    this.#surroundings = {
      time,
      service: this.#service,
      database: this.#database,
      observer,
      traps: this.#traps,
      log: pino(
        { level: 'debug', base: null, timestamp: false },
        { write: (line: string) => observer.expectNoSecret(line) },
      ),
      fillUp: ({ folder }, ms) => {
        this.#during(ms, (is) => (this.#database.isFull = is));
        this.#during(ms, (is) => (folder.isFull = is));
      },
    };
  }

  async start(): Promise<void> {
    const pair = this.#service.firstPair;
    this.#database.put(importPair({ pair, service: SERVICE_URL, by: 'office', replace: false }));
    for (const machine of this.#machines) this.#start(machine);
    await this.#time.pass(1_000);
  }

  async take(step: Step): Promise<void> {
    await this.#time.pass(step.after);
    this.observer.note(`step: ${JSON.stringify(step)}`);
    this.#do(step);
    await this.#time.pass(150);
  }

  #do(step: Step): void {
    const database = this.#database;
    const machine = this.#machines[('by' in step ? step.by : 0) % this.#machines.length]!;
    switch (step.do) {
      case 'meet':
        return void this.#meet(step.oddity);
      case 'ask':
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
      case 'cutOff':
        return machine.process?.cutOffFor(step.forMs);
      case 'trap':
        this.#traps.push(step.trap);
        return void this.#meet(step.oddity);
      case 'loseAnswer':
        return void database.unanswered.push(...Array(step.times).fill(step.kind));
      case 'databaseDown':
        return this.#during(step.forMs, (is) => (database.isDown = is));
      case 'unreachable':
        return this.#during(step.forMs, (is) => (this.#service.isUnreachable = is));
      case 'goBack':
        return database.goBack(step.lost);
      case 'restoreBackup':
        for (const { process } of this.#machines) process?.kill();
        return database.goBack(step.lost);
      case 'empty':
        return database.empty();
    }
  }

  async #meet(oddity: Oddity | undefined): Promise<void> {
    if (oddity) this.#service.oddities.push(oddity);
    for (const { process } of this.#machines) this.#ask(process, 1);
    await this.#time.sleep(60);
    this.#service.expire();
    for (const { process } of this.#machines) this.#ask(process, 1);
  }

  #during(ms: number, set: (is: boolean) => void): void {
    set(true);
    this.#time.after(ms, () => set(false));
  }

  #ask(process: Process | undefined, times: number): void {
    for (let time = 0; time < times; time += 1) void process?.ask();
  }

  #start(machine: Machine): void {
    if (machine.process) return;
    const process = new Process(machine, this.#surroundings);
    this.observer.note(`${process.name} starts`);
    void process.start();
  }

  /** Ends all faults, starts what is not running, and waits until all replicas serve, or report that they cannot. */
  async recover(): Promise<void> {
    this.observer.note('all faults end');
    this.#endFaults();
    const end = this.#time.now + RECOVERY_MS;
    let codes: (string | undefined)[] = [];
    while (this.#time.now < end) {
      for (const machine of this.#machines) this.#start(machine);
      await this.#time.pass(LOOK_EVERY_MS);
      codes = await this.#askAll();
      if (this.#isWell(codes)) return;
    }
    const { state } = this.#database;
    this.observer.violations.push(
      `after ${RECOVERY_MS / 60_000} minutes the replicas answer ${codes.join(', ')}; ` +
        `the store has ${state?.pair.refreshToken ?? 'nothing'}${state?.lost ? ' (lost)' : ''}, ` +
        `the service accepts ${this.#service.live.refreshToken}`,
    );
  }

  #endFaults(): void {
    this.#service.oddities.length = 0;
    this.#database.unanswered.length = 0;
    Object.assign(this.#database, { isDown: false, isFull: false });
    this.#service.isUnreachable = false;
    this.#traps.length = 0;
    for (const machine of this.#machines) {
      machine.isCutOff = false;
      machine.folder.isFull = false;
      machine.process?.wake();
    }
  }

  /** A few exchanges for each step, and for each life of an access token. */
  expectFewExchanges(): void {
    const { steps, life } = this.#plan;
    const { length } = this.#service.exchanges;
    const most = 4 + 5 * steps.length + (3 * this.#time.now) / (life * 1000);
    if (length > most) this.observer.violations.push(`${length} exchanges are too many`);
  }

  #isWell(codes: readonly (string | undefined)[]): boolean {
    const { refreshToken } = this.#service.live;
    const { state } = this.#database;
    if (!this.observer.isKept(refreshToken)) {
      return codes.every((code) => code === 'TOKENS_LOST' || code === 'TOKENS_MISSING');
    }
    return state?.pair.refreshToken === refreshToken && codes.every((code) => code === undefined);
  }

  async #askAll(): Promise<(string | undefined)[]> {
    const answers = this.#machines.map(
      ({ process }) => process?.ask() ?? Promise.resolve('not running'),
    );
    let codes: (string | undefined)[] | undefined;
    void Promise.all(answers).then((all) => (codes = all));
    await this.#time.pass(2 * LOOK_EVERY_MS, () => codes !== undefined);
    return codes ?? ['no answer'];
  }

  /** Nothing of this history may continue in the next one. */
  end(): void {
    for (const { process } of this.#machines) process?.kill();
    this.#time.end();
  }
}
