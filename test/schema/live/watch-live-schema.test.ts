import { expect, onTestFinished, test } from 'vitest';
import {
  honest,
  json,
  startFakeUpstream,
  type Reply,
  introspected,
} from '../../support/imitations/scripted.ts';
import { silence } from '../../support/imitations/hostile-sockets.ts';
import { startGateway } from '../../support/gateway/gateway.ts';
import { documentedSdl } from '../../support/documented-sdl.ts';
import { ManualClock, MINUTE, SECOND } from '../../support/random/manual-clock.ts';

const LESS = documentedSdl.replace('  firstName: String\n', '');
const MORE = documentedSdl.replace('firstName: String', 'firstName: String, email: String');
const NAMES = '{ allPersons { firstName } }';

test('SCHEMA_POLL reports once what the live schema breaks, and never changes the served schema', async () => {
  const { show, gateway, looks, said } = await start();
  show(introspected(LESS));
  await looks(3);
  expect(said()).toEqual([
    {
      level: 50,
      msg: expect.stringMatching(/breaks what is served.*`schema check`.*`schema pull`/),
      breaking: 1,
      dangerous: 0,
      additive: 0,
      changes: ["Field 'firstName' was removed from object type 'Person'"],
    },
  ]);
  expect(await gateway.gateway.metrics.text()).toMatch(/schema_drift\{kind="breaking"\} 1\n/);
  expect((await gateway.ask(NAMES)).errors).toBeUndefined();

  show(introspected(LESS.replace('id: ID!', 'id: ID')));
  await looks(1);
  expect(said().slice(1)).toEqual([expect.objectContaining({ level: 50, breaking: 2 })]);

  show(introspected(documentedSdl));
  await looks(2);
  expect(said().slice(2)).toEqual([
    { level: 30, msg: 'the live schema equals the snapshot again' },
  ]);
  expect(await gateway.gateway.metrics.text()).toMatch(/schema_drift\{kind="breaking"\} 0\n/);
});

test('SCHEMA_POLL logs additions of the service without a warning', async () => {
  const { show, looks, said } = await start();
  show(introspected(MORE));
  await looks(2);
  expect(said()).toEqual([expect.objectContaining({ level: 30, additive: 1, breaking: 0 })]);
});

test('SCHEMA_POLL reports failing checks once, and callers are still answered', async () => {
  const { show, gateway, looks, said } = await start();
  show(json({ errors: [{ message: 'Introspection is off.' }] }));
  await looks(3, 2);
  expect(said()).toEqual([
    expect.objectContaining({
      level: 40,
      msg: 'the live schema could not be checked',
      err: expect.objectContaining({ message: expect.stringContaining('Introspection is off.') }),
    }),
  ]);
  expect(await gateway.gateway.metrics.text()).not.toContain('recruiting_schema_drift{');
  expect((await gateway.ask(NAMES)).errors).toBeUndefined();
  show(introspected(documentedSdl));
  await looks(2);
  expect(said().slice(1)).toEqual([{ level: 30, msg: 'the live schema can be checked again' }]);
});

test('SCHEMA_POLL checks first after the start, and stopping does not wait for a check', async () => {
  const { upstream, show, gateway, clock } = await start(3600);
  show(silence);
  await clock.pass(29 * SECOND);
  expect(upstream.received.length).toBe(0);
  await clock.pass(31 * SECOND);
  await upstream.arrived(1);
  await gateway.gateway.close();
  expect(await upstream.received[0]!.over).toBe('cut');
  expect(gateway.logged.filter(({ level }) => Number(level) >= 40)).toEqual([]);
});

test('without SCHEMA_POLL the live schema is not checked', async () => {
  const { upstream, clock } = await start('off');
  await clock.pass(10 * MINUTE);
  expect(upstream.received.length).toBe(0);
});

async function start(poll: number | 'off' = 60) {
  const upstream = await startFakeUpstream({ persons: 2 });
  onTestFinished(() => upstream[Symbol.asyncDispose]());
  const clock = new ManualClock();
  const config = { schemaPollSeconds: poll === 'off' ? undefined : poll };
  const gateway = await startGateway(upstream, { clock, config });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  let next = introspected(documentedSdl);
  let shown = next;
  upstream.answer((...exchange) => {
    const { body } = exchange[1];
    // The first request of a check. One that has begun is answered to its end as it was.
    if (/isOneOf/.test(body)) shown = next;
    return (/__schema/.test(body) ? shown : honest)(...exchange);
  });
  return {
    upstream,
    gateway,
    clock,
    /** Sets the answer to introspection queries, from the next check on. */
    show: (reply: Reply) => void (next = reply),
    /** Waits until this number of checks has ended, and the next one has begun. */
    looks: async (count: number, requests = 2) => {
      // The refresh at the start uses real sockets: it must be over before the clock passes its time limit.
      await gateway.ask(NAMES);
      const expected = upstream.received.length + count * requests + 1;
      const looked = async () => {
        await clock.pass(30 * SECOND);
        return upstream.received.length;
      };
      await expect.poll(looked, { interval: 2, timeout: 20_000 }).toBeGreaterThanOrEqual(expected);
    },
    /** What was logged about the live schema. */
    said: () =>
      gateway.logged
        .filter(({ msg }) => /the live schema/.test(String(msg)))
        .map(({ level, msg, err, breaking, dangerous, additive, changes }) => ({
          level,
          msg,
          err,
          breaking,
          dangerous,
          additive,
          changes,
        })),
  };
}
