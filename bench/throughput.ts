import { askPage, type Asking } from './ask.ts';
import { startBenchSandbox, startGateway } from './processes.ts';
import type { Benchmark } from './report.ts';

const PERSONS = 5_000;
const CALLERS = 16;
const ROUNDS = 8;
const ROUND_MS = 1_500;

export const throughput: Benchmark = {
  title: `persons(first: 50), ${CALLERS} callers, no upstream latency`,
  measure: async () => {
    await using sandbox = await startBenchSandbox({ persons: PERSONS });
    await using gateway = await startGateway(sandbox);
    // Different pages: the gateway shares identical queries under way, and that is not what is measured.
    const cursors = await cursorsOf(sandbox);
    await requestsPerSecond(sandbox, cursors);
    await requestsPerSecond(gateway, cursors);
    const bare: number[] = [];
    const ours: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      bare.push(await requestsPerSecond(sandbox, cursors));
      ours.push(await requestsPerSecond(gateway, cursors));
    }
    return [
      { what: 'the bare sandbox', figures: bare, unit: 'requests/s' },
      { what: 'the gateway in front of it', figures: ours, unit: 'requests/s' },
      { what: 'gateway / bare', figures: ours.map((one, at) => one / bare[at]!), unit: 'x' },
    ];
  },
};

async function cursorsOf(sandbox: Asking): Promise<string[]> {
  const cursors: string[] = [];
  let after: string | null = null;
  for (;;) {
    const { pageInfo } = await askPage(sandbox, 50, after);
    if (!pageInfo.hasNextPage) return cursors;
    after = pageInfo.endCursor;
    cursors.push(after!);
  }
}

async function requestsPerSecond(asking: Asking, cursors: readonly string[]): Promise<number> {
  const start = performance.now();
  let done = 0;
  let next = 0;
  const call = async () => {
    while (performance.now() - start < ROUND_MS) {
      next = (next + 1) % cursors.length;
      const { items } = await askPage(asking, 50, cursors[next]);
      if (items.length === 0) throw new Error('A page came without persons.');
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, call));
  return (done / (performance.now() - start)) * 1_000;
}
