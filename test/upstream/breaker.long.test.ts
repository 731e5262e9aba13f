import { assert, asyncProperty, array, constantFrom } from 'fast-check';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import type { Reply } from '../service/service.ts';
import { fullSdl, fullService } from '../service/full.ts';
import { after, cut, honest, json, refusal, silence, text } from '../service/replies.ts';
import { ManualClock, SECOND } from '../support/random/manual-clock.ts';

test.each<[string, Reply, isDown: boolean]>([
  ['connections that break', cut, true],
  ['no answer in time', silence, true],
  ['502 of a proxy', text('<html>', 502), true],
  ['errors of GraphQL', json({ errors: [{ message: 'No.' }] }), false],
  ['errors of GraphQL with status 500', json({ errors: [{ message: 'No.' }] }, 500), false],
  ['what is no GraphQL', text('<html>'), false],
  ['429', json({}, 429), false],
  ['a refused token', refusal('blocked'), false],
])(
  'the breaker opens when the service is down, not when it answers, and closes when it answers again: %s',
  async (_what, reply, isDown) => {
    await using gateway = await start({}, reply === silence ? IMPATIENT : {});
    await gateway.goDown(reply);
    expect(gateway.said(/is down/)).toHaveLength(isDown ? 1 : 0);
    if (isDown) await expectRefused(gateway, { retryAfter: 1 });
    else {
      const { length } = gateway.service.received;
      await gateway.ask(anyPersons());
      expect(gateway.service.received.length).toBeGreaterThan(length);
    }
    gateway.clock.jump(SECOND);
    gateway.service.answer(honest);
    for (let count = 0; count < 2; count += 1)
      expect((await gateway.ask(anyPersons())).errors).toBeUndefined();
    expect(gateway.said(/answers again/)).toHaveLength(isDown ? 1 : 0);
  },
);

test('failures that are gone when the query is sent again do not open the breaker', async () => {
  await using gateway = await start();
  for (let count = 0; count < 8; count += 1) {
    gateway.service.answer(text('', 503), cut, honest);
    expect((await gateway.ask(anyPersons())).errors).toBeUndefined();
    gateway.clock.jump(SECOND);
  }
  expect(gateway.said(/is down/)).toEqual([]);
});

test('callers who leave do not open the breaker', async () => {
  await using gateway = await start();
  gateway.service.answer(silence);
  const caller = new AbortController();
  const answers = Array.from({ length: 8 }, () =>
    gateway.ask(anyPersons(), {}, { signal: caller.signal }).catch(() => undefined),
  );
  await gateway.service.arrived(gateway.before + 8);
  gateway.clock.jump(2 * SECOND);
  caller.abort();
  await Promise.all(answers);
  gateway.service.answer(honest);
  expect((await gateway.ask(anyPersons())).errors).toBeUndefined();
});

test('requests that were waiting for their turn are refused when the breaker opens, and are not counted as sent', async () => {
  await using gateway = await start({}, { config: { upstreamConcurrency: 1 } });
  gateway.service.answer(cut);
  await Promise.all(Array.from({ length: 4 }, () => gateway.ask(anyPersons())));
  gateway.clock.jump(2 * SECOND);
  await Promise.all(Array.from({ length: 20 }, () => gateway.ask(anyPersons())));
  const lines = gateway.said(/^request$/) as { upstreamRequests?: number }[];
  const counted = lines.reduce((sum, { upstreamRequests = 0 }) => sum + upstreamRequests, 0);
  expect(counted).toBe(gateway.service.received.length - gateway.before);
});

test('a list that hangs does not open the breaker while others are answered', async () => {
  await using gateway = await start({}, IMPATIENT);
  gateway.service.answer(silence);
  const hanging = Array.from({ length: 8 }, () => gateway.ask(anyPersons()));
  await gateway.service.arrived(gateway.before + 8);
  gateway.clock.jump(2 * SECOND);
  gateway.service.answer(honest);
  expect((await gateway.ask(anyPersons())).errors).toBeUndefined();
  for (const { errors } of await Promise.all(hanging)) {
    expect(errors).toMatchObject([{ extensions: { code: 'UPSTREAM_TIMEOUT' } }]);
  }
  expect((await gateway.ask(anyPersons())).errors).toBeUndefined();
  expect(gateway.said(/is down/)).toEqual([]);
});

test('after the pause one query is sent as a probe; while it is in flight, others are refused', async () => {
  await using gateway = await start();
  await gateway.goDown();
  gateway.clock.jump(SECOND);
  const gate = Promise.withResolvers<void>();
  gateway.service.answer(after(gate.promise, honest));
  const { length } = gateway.service.received;
  const probe = gateway.ask(anyPersons());
  await gateway.service.arrived(length + 1);
  await expectRefused(gateway, { retryAfter: 5 });
  gate.resolve();
  expect((await probe).errors).toBeUndefined();
  expect((await gateway.ask(anyPersons())).errors).toBeUndefined();
});

test('a probe that hangs does not block later queries', async () => {
  await using gateway = await start({}, IMPATIENT);
  await gateway.goDown();
  gateway.clock.jump(SECOND);
  gateway.service.answer(silence, honest);
  const { length } = gateway.service.received;
  const probe = gateway.ask(anyPersons());
  await gateway.service.arrived(length + 1);
  gateway.clock.jump(5 * SECOND);
  expect((await gateway.ask(anyPersons())).errors).toBeUndefined();
  expect((await probe).errors).toMatchObject([{ extensions: { code: 'UPSTREAM_TIMEOUT' } }]);
  expect((await gateway.ask(anyPersons())).errors).toBeUndefined();
});

test('when the caller of the probe leaves, the next query becomes the probe', async () => {
  await using gateway = await start();
  await gateway.goDown();
  gateway.clock.jump(SECOND);
  gateway.service.answer(silence, honest);
  const { length } = gateway.service.received;
  const caller = new AbortController();
  const probe = gateway.ask(anyPersons(), {}, { signal: caller.signal }).catch(() => undefined);
  await gateway.service.arrived(length + 1);
  caller.abort();
  await probe;
  expect(await gateway.service.received[length]!.over).toBe('cut');
  expect((await gateway.ask(anyPersons())).errors).toBeUndefined();
});

test('a mutation is refused unsent, and becomes the probe only if no query comes', async () => {
  const { schema, sent } = fullService();
  await using gateway = await start(
    { schema },
    { snapshot: fullSdl, config: { mutations: 'all' } },
  );
  await gateway.goDown(cut, anyCandidates);
  const rename = 'mutation { rename(id: 1, name: "Ada") { id } }';
  gateway.service.answer(honest);
  for (const [passed, retryAfter] of [
    [0, 2],
    [SECOND, 1],
  ] as const) {
    gateway.clock.jump(passed);
    expect((await gateway.ask(rename)).errors).toMatchObject([
      {
        message: expect.stringContaining('Nothing was sent'),
        extensions: { code: 'UPSTREAM_UNREACHABLE', retryAfter },
      },
    ]);
  }
  expect(sent.renames).toBe(0);
  gateway.clock.jump(SECOND);
  expect((await gateway.ask(rename)).errors).toBeUndefined();
  expect(sent.renames).toBe(1);
});

const PAUSES = [1, 2, 4, 8, 16, 30, 30];
const OPENING = ['fails', 'a pause', 'fails', 'fails', 'fails', 'fails'] as const;
const ANSWERED_BETWEEN = [
  'fails',
  'a pause',
  'is answered',
  ...Array<'fails'>(6).fill('fails'),
] as const;
const DOUBLINGS = PAUSES.slice(1).flatMap(() => ['a pause', 'fails'] as const);

test('for any order of failures, answers and pauses, requests are sent by the rules', async () => {
  await using gateway = await start();
  const step = constantFrom('fails', 'fails', 'fails', 'is answered', 'half a pause', 'a pause');
  const history = array(step, { minLength: 8, maxLength: 20 });
  await assert(
    asyncProperty(history, async (steps) => {
      gateway.service.answer(honest);
      gateway.clock.jump(60 * SECOND);
      expect((await gateway.ask(anyPersons())).errors).toBeUndefined();
      let failures = 0;
      let failingFor = 0;
      let pauses = -1;
      let wait = 0;
      for (const what of steps) {
        const pause = (PAUSES[pauses] ?? 30) * SECOND;
        if (what === 'half a pause' || what === 'a pause') {
          const passed = what === 'a pause' ? pause : pause / 2;
          gateway.clock.jump(passed);
          wait -= passed;
          if (failures > 0) failingFor += passed;
          continue;
        }
        gateway.service.answer(what === 'fails' ? cut : honest);
        const { length } = gateway.service.received;
        const { errors } = await gateway.ask(anyPersons());
        const sent = gateway.service.received.length - length;
        const isOpen = pauses >= 0;
        if (isOpen && wait > 0) {
          expect(sent).toBe(0);
          expect(errors![0]!.extensions['retryAfter']).toBe(Math.ceil(wait / SECOND));
        } else if (what === 'is answered') {
          expect({ sent, errors }).toEqual({ sent: 1, errors: undefined });
          failures = 0;
          failingFor = 0;
          pauses = -1;
        } else {
          failures += 1;
          expect(sent).toBe(isOpen ? 1 : 4);
          if (!isOpen && (failures < 5 || failingFor < 2 * SECOND)) continue;
          pauses += 1;
          wait = (PAUSES[pauses] ?? 30) * SECOND;
        }
      }
    }),
    { numRuns: 8, examples: [[[...OPENING, ...DOUBLINGS, 'fails']], [ANSWERED_BETWEEN]] },
  );
});

const IMPATIENT = { config: { upstreamTimeoutMs: 1_000 } };

let queries = 0;

/** Each is different, since equal queries would share a request. */
function anyPersons(): string {
  queries += 1;
  return `{ persons(first: 1) { items { id${queries}: id } } }`;
}

function anyCandidates(): string {
  return anyPersons().replace('persons', 'candidates');
}

async function start(
  upstreamOptions: Parameters<typeof startGatewayOverService>[0] = {},
  options: Parameters<typeof startGatewayOverService>[1] = {},
) {
  const clock = new ManualClock();
  const { now, elapsed } = clock;
  const gateway = await startGatewayOverService(upstreamOptions, {
    ...options,
    clock: {
      now,
      elapsed,
      // The waits before a request is sent again are skipped, and the time stands still.
      sleep: (ms, signal) => (ms < 15_000 ? setImmediate() : clock.sleep(ms, signal)),
    },
  });
  return {
    ...gateway,
    clock,
    before: gateway.service.received.length,
    said: (words: RegExp) => gateway.logged.filter(({ msg }) => words.test(String(msg))),
    goDown: async (reply: Reply = cut, query = anyPersons) => {
      gateway.service.answer(reply);
      await Promise.all(Array.from({ length: 4 }, () => gateway.ask(query())));
      clock.jump(2 * SECOND);
      await gateway.ask(query());
    },
  };
}

async function expectRefused(
  gateway: GatewayOverService,
  { retryAfter }: { retryAfter: number },
): Promise<void> {
  const { length } = gateway.service.received;
  const { errors } = await gateway.ask(anyPersons());
  expect(errors).toMatchObject([
    {
      message: expect.stringContaining(`Try again in ${retryAfter} s.`),
      path: ['persons'],
      extensions: { code: 'UPSTREAM_UNREACHABLE', retryAfter },
    },
  ]);
  expect(gateway.service.received).toHaveLength(length);
}
