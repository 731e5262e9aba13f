/**
 * Replays traces of the model on the real token keepers: what befalls the replicas, the service and the database in a
 * trace befalls them in the same order, in the world of the simulator, whose observer checks the same promises. A trace
 * is a file in the Informal Trace Format; the exit code is 1 if one of them breaks a promise.
 *
 *   node --import ./test/simulate/hooks.ts test/tokens/model/replay.ts <folder of traces> [flaw]
 */
import { globSync, readFileSync } from 'node:fs';
import process from 'node:process';
import { FLAWS } from '../../simulate/flaws.ts';
import { runPlan } from '../../simulate/history.ts';
import type { Deed, Plan, Step } from '../../simulate/plan.ts';
import type { Point, Trap } from '../../simulate/process.ts';
import type { Oddity } from '../../simulate/service.ts';

/** A claim lives for 3 units, and for 150 seconds. */
const UNIT_MS = 50_000;

async function replay(folder: string, flaw: string | undefined): Promise<void> {
  const files = globSync(`${folder}/*.itf.json`).toSorted();
  let refreshes = 0;
  for (const [index, file] of files.entries()) {
    const plan = planOf(readTrace(readFileSync(file, 'utf8')), index);
    const { violations, lines } = await runPlan(plan, flaw === undefined ? undefined : FLAWS[flaw]);
    refreshes += lines.filter((line) => line.includes('hears granted')).length;
    if (violations.length === 0) continue;
    process.stdout.write(`${file}\n${lines.join('\n')}\n${violations.join('\n')}\n`);
    process.exitCode = 1;
    return;
  }
  process.stdout.write(`${files.length} traces replayed, with ${refreshes} refreshes\n`);
}

interface Happened {
  readonly name: string;
  readonly by: number;
  /** The phase of the replica before. */
  readonly phase: string;
}

function readTrace(text: string): Happened[] {
  const { states } = JSON.parse(text) as { states: Record<string, unknown>[] };
  return states.slice(1).map((state, index) => {
    const { name, by } = variableOf(state, 'did') as { name: string; by: Int };
    const before = variableOf(states[index]!, 'replicas') as { '#map': [Int, { phase: string }][] };
    const own = before['#map'].find(([replica]) => numberOf(replica) === numberOf(by))!;
    return { name, by: numberOf(by), phase: own[1].phase };
  });
}

function variableOf(state: Record<string, unknown>, variable: string): unknown {
  return Object.entries(state).find(([name]) => name.split('::').at(-1) === variable)![1];
}

type Int = number | { readonly '#bigint': string };

function numberOf(int: Int): number {
  return typeof int === 'number' ? int : Number(int['#bigint']);
}

function planOf(trace: readonly Happened[], seed: number): Plan {
  const steps: Step[] = [];
  /** An event of a replica in the middle of an exchange is a trap that is set before. */
  const trapped = new Set<Happened>();
  let after = 0;
  const take = (deed: Deed) => {
    steps.push({ after, ...deed });
    after = 0;
  };
  for (const [at, one] of trace.entries()) {
    if (one.name === 'tick') after += UNIT_MS;
    if (trapped.has(one)) continue;
    if (one.name === 'claim' || one.name === 'claimUnheard') {
      const exchange = exchangeFrom(trace, at);
      for (const each of exchange) trapped.add(each);
      for (const deed of deedsOf(exchange, trace)) take(deed);
    } else {
      const deed = deedOf(one, trace);
      if (deed) take(deed);
    }
  }
  const world = { replicas: 3, life: 900, ahead: 0, fromLink: false, isPooled: seed % 2 === 0 };
  const refusesEarly = seed % 4 === 1 ? 'as spent' : null;
  const ways = { revokesOnRefresh: seed % 3 === 0, refusesEarly } as const;
  return { ...world, ...ways, early: [], steps, seed };
}

/** Everything that a replica does from its claim until it is idle again, or down. */
function exchangeFrom(trace: readonly Happened[], at: number): Happened[] {
  const { by } = trace[at]!;
  const own = trace.slice(at).filter((one) => one.by === by && OWN.has(one.name));
  const end = own.findIndex(({ phase, name }, index) => {
    return index > 0 && (phase === 'idle' || phase === 'down' || name === 'start');
  });
  return end < 0 ? own : own.slice(0, end);
}

const OWN = new Set(
  (
    'claim claimUnheard send forgo receive endUncertain giveUp save saveUnheard hold holdOnFullDisk endRefused ' +
    'process processUnheard cutRequest crash start sleep wake cut connect'
  ).split(' '),
);

const ODD: Record<string, Oddity> = {
  processUnheard: 'cut after it was processed',
  cutRequest: 'cut before it arrives',
  giveUp: 'no answer',
};

const POINT_OF: Record<string, Point> = {
  idle: 'claim',
  claimed: 'send',
  asked: 'answer',
  granted: 'answer',
  unsaved: 'save',
  holding: 'save',
  refused: 'endAttempt',
  dropped: 'endAttempt',
};

/** The faults of an exchange, and the exchange that meets them. */
function deedsOf(exchange: readonly Happened[], trace: readonly Happened[]): Deed[] {
  const oddity = exchange.map(({ name }) => ODD[name]).find((odd) => odd !== undefined) ?? null;
  const what = 'committed, not heard';
  const interrupted = exchange.flatMap(({ name }): Deed[] => {
    const purpose = UNHEARD[name];
    return purpose ? [{ do: 'interrupt', interruption: { purpose, what }, times: 2 }] : [];
  });
  const trapped = exchange.flatMap((one): Deed[] => {
    const effect = EFFECT_OF[one.name];
    if (!effect || one.phase === 'idle') return [];
    return [{ do: 'trap', trap: trapOf(one, effect, trace), oddity }];
  });
  return [...interrupted, ...(trapped.length > 0 ? trapped : [{ do: 'meet', oddity } as const])];
}

const UNHEARD: Record<string, 'claim' | 'save'> = { claimUnheard: 'claim', saveUnheard: 'save' };

const EFFECT_OF: Record<string, Trap['effect']> = {
  crash: 'kill',
  sleep: 'stop',
  cut: 'cutOff',
  holdOnFullDisk: 'noRoom',
};

function trapOf(one: Happened, effect: Trap['effect'], trace: readonly Happened[]): Trap {
  // The answer takes about this long; a pair that cannot be saved is in the rescue file by then.
  const delayMs = one.phase === 'granted' ? 45 : one.phase === 'holding' ? 2_000 : 0;
  return { point: POINT_OF[one.phase] ?? 'read', effect, delayMs, forMs: durationOf(one, trace) };
}

/** Until the trace reverts it; longer than every timeout if it does not. */
function durationOf(one: Happened, trace: readonly Happened[]): number {
  const rest = trace.slice(trace.indexOf(one) + 1);
  const end = rest.findIndex(
    ({ name, by }) => by === one.by && (name === 'wake' || name === 'connect'),
  );
  if (end < 0) return 4 * UNIT_MS;
  return 1_000 + UNIT_MS * rest.slice(0, end).filter(({ name }) => name === 'tick').length;
}

function deedOf(one: Happened, trace: readonly Happened[]): Deed | undefined {
  const { name, by } = one;
  switch (name) {
    case 'crash':
      return { do: 'kill', by };
    case 'start':
      return { do: 'start', by };
    case 'sleep':
      return { do: 'stop', by, forMs: durationOf(one, trace) };
    case 'cut':
      return { do: 'cutOff', by, forMs: durationOf(one, trace) };
    case 'failover':
      return { do: 'failOver', lost: 1 };
    default:
      return undefined;
  }
}

await replay(process.argv[2] ?? '.', process.argv[3]);
