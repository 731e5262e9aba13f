/** Probes /health as an orchestrator does, in a process of its own: nothing else delays its clock. */
import { request } from 'node:http';
import process from 'node:process';
import { setTimeout as pass } from 'node:timers/promises';

const EVERY_MS = 50;
const TIMEOUT_MS = 5_000;

export interface HealthReport {
  /** Of each probe since the last report that was answered, ms. */
  readonly times: readonly number[];
  /** How often probes failed, by reason. */
  readonly failures: readonly (readonly [reason: string, times: number])[];
}

let times: number[] = [];
let failures = new Map<string, number>();
process.on('message', (order: { readonly origin: string } | 'report') => {
  if (order === 'report') {
    process.send!({ times, failures: [...failures] } satisfies HealthReport);
    times = [];
    failures = new Map();
  } else void probeForever(order.origin);
});
process.on('disconnect', () => process.exit());

async function probeForever(origin: string): Promise<void> {
  for (;;) {
    const outcome = await probe(origin);
    if (typeof outcome === 'number') times.push(outcome);
    else failures.set(outcome, (failures.get(outcome) ?? 0) + 1);
    await pass(EVERY_MS);
  }
}

/** On a new connection, as probes are. */
function probe(origin: string): Promise<number | string> {
  const began = performance.now();
  return new Promise((done) => {
    const outgoing = request(`${origin}/health`, { agent: false, timeout: TIMEOUT_MS });
    outgoing.once('response', (response) => {
      response.resume();
      if (response.statusCode === 200) done(performance.now() - began);
      else done(`status ${response.statusCode}`);
    });
    outgoing.once('timeout', () => void outgoing.destroy(new Error('no answer')));
    outgoing.on('error', (error: NodeJS.ErrnoException) => done(error.code ?? error.message));
    outgoing.end();
  });
}
