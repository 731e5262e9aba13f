// Imports the engine's insides, and goes when the engine is replaced.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { member, slotScanner } from '../../src/answers/envelope.ts';
import { objectShape, TYPE_KEY, type Shape } from '../../src/answers/shape.ts';
import { atOnce } from '../../src/pausable.ts';
import { pageScanner, type PageForm } from '../../src/plans/pages/page.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { after, honest, type Reply } from '../support/imitations/scripted.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const PERSON = objectShape({ nullable: false, type: 'Person' }, [
  {
    key: 'id',
    shape: { kind: 'id', nullable: false, type: 'ID' },
    isSilent: true,
    idOf: 'Person',
  },
  {
    key: 'firstName',
    shape: { kind: 'string', nullable: false, type: 'String' },
    isSilent: false,
  },
]);

test('the original bytes of a page whose ids are cut out are not kept', async () => {
  const { page, came } = scanned();
  expect(page.piece(0, 0, 1).toString()).toBe('{"firstName":"Ada"},{"firstName":"Bo"}');
  // What a WeakRef referred to in this turn is not collected before its end.
  await new Promise(setImmediate);
  collect();
  expect(came.deref()).toBeUndefined();
  expect(page.items.map(({ identity }) => identity)).toEqual(['Person:1', 'Person:2']);
  expect(page.identities!.isJoinable).toBe(true);
});

test('only the type of a result is cut out of the page behind it, so the records are not copied', async () => {
  const shape = { ...PERSON, fields: PERSON.fields.slice(1) };
  const { page, came } = scanned(shape, true);
  expect(page.piece(0, 0, 1).toString()).toBe('{"firstName":"Ada"},{"firstName":"Bo"}');
  expect(page.bytes.byteLength).toBe(came.deref()!.byteLength);
});

function scanned(shape = PERSON, isResult = false) {
  const form = {
    adapter: { name: 'persons' },
    identity: { values: 1 },
    shapes: [shape],
    keys: ['items'],
    sizes: [],
    hasCount: false,
    result: {
      shape: (page: Shape): Shape =>
        isResult
          ? {
              kind: 'abstract',
              nullable: false,
              type: 'PersonsResult',
              of: (name) => (name === 'Persons' && page.kind === 'object' ? page : undefined),
              common: () => [],
            }
          : page,
    },
    way: undefined,
  };
  const scan = pageScanner(form as unknown as PageForm);
  const items =
    shape === PERSON
      ? '[{"id":"1","firstName":"Ada"},{"id":"2","firstName":"Bo"}]'
      : '[{"firstName":"Ada"},{"firstName":"Bo"}]';
  const info = '{"hasNextPage":false,"endCursor":null}';
  const type = isResult ? `"${TYPE_KEY}":"Persons",` : '';
  const bytes = ownBuffer(`{"data":{"persons":{${type}"items":${items},"pageInfo":${info}}}}`);
  const page = atOnce(scan(bytes))?.page;
  if (!page || !('piece' in page)) throw new Error('The scanner did not take the page.');
  return {
    page: page as typeof page & { piece: (...at: number[]) => Buffer; bytes: Buffer },
    came: new WeakRef(bytes.buffer),
  };
}

function ownBuffer(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}

test('the original bytes of a batch of records whose ids are cut out are not kept', async () => {
  const { batch, came } = scannedBatch();
  await new Promise(setImmediate);
  collect();
  expect(came.deref()).toBeUndefined();
  expect(String(batch.whole)).toBe('"_rsRecord0":{"firstName":"Ada"},"_rsRecord1":null');
  expect(batch.at).toEqual([13, 32, 46, 50]);
});

function scannedBatch() {
  const records = '"_rsRecord0":{"id":"1","firstName":"Ada"},"_rsRecord1":null';
  const bytes = ownBuffer(`{"data":{${records}},"extensions":{"trace":"${'x'.repeat(1_000)}"}}`);
  const slots = ['_rsRecord0', '_rsRecord1'].map((key) =>
    member(key, { ...PERSON, nullable: true }),
  );
  const batch = atOnce(slotScanner(slots)(bytes));
  if (!batch) throw new Error('The scanner did not take the batch.');
  return { batch, came: new WeakRef(bytes) };
}

test('a drain keeps the pages of a list, and not what arrived together with them', async () => {
  await using gateway = await startGatewayOverFake({ persons: 2_000 });
  const { upstream } = gateway;
  const gate = Promise.withResolvers<void>();
  // The 42 pages have 140 KB together, and what arrives has 2.5 MB.
  upstream.answer(afterHints, ...Array<Reply>(40).fill(afterHints), after(gate.promise, honest));
  const before = await buffers();
  const drain = gateway.ask<{ allPersons: unknown[] }>('{ allPersons { id firstName } }');
  await upstream.arrived(42);
  await expect.poll(async () => (await buffers()) - before).toBeLessThan(MEGABYTE);
  gate.resolve();
  expect((await drain).data.allPersons).toHaveLength(2_000);
  expect(upstream.received).toHaveLength(42);
});

const MEGABYTE = 1024 * 1024;

/** Answers as the sandbox does, after 56 KB of interim answers, in one write: all of it is read at once. */
const afterHints: Reply = async (response, received, sandbox) => {
  const { socket } = response;
  socket!.cork();
  for (let hint = 0; hint < 4; hint += 1) {
    response.writeEarlyHints({ link: '</a.css>; rel=preload', 'x-more': 'x'.repeat(14_000) });
  }
  await honest(response, received, sandbox);
  socket!.uncork();
};

/** Bytes of all buffers in use. */
async function buffers(): Promise<number> {
  await new Promise(setImmediate);
  collect();
  return process.memoryUsage().arrayBuffers;
}
