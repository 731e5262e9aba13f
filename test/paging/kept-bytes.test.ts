import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { objectShape, TYPE_KEY } from '../../src/answers/shape.ts';
import { atOnce } from '../../src/pausable.ts';
import { pageScanner } from '../../src/plans/pages/scan-page.ts';
import { batchScanner } from '../../src/plans/records/scan-batch.ts';
import {
  after,
  honest,
  startGatewayOverFake,
  type Reply,
} from '../support/imitations/fake-upstream.ts';

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

test('of a page whose ids are cut out, the bytes as they came are not kept', async () => {
  const { page, came } = scanned();
  expect(page.piece(0, 0, 1).toString()).toBe('{"firstName":"Ada"},{"firstName":"Bo"}');
  // What a WeakRef referred to in this turn is not collected before its end.
  await new Promise(setImmediate);
  collect();
  expect(came.deref()).toBeUndefined();
  expect(page.items.map(({ identity }) => identity)).toEqual(['Person:1', 'Person:2']);
  expect(page.identities!.isJoinable).toBe(true);
});

test('of a page behind a result, only the type of the result is cut out, so its records are not copied', async () => {
  const shape = { ...PERSON, fields: PERSON.fields.slice(1) };
  for (const at of ['before', 'after'] as const) {
    const { page, came } = scanned(shape, at);
    expect(page.piece(0, 0, 1).toString()).toBe('{"firstName":"Ada"},{"firstName":"Bo"}');
    // As it came, or a copy of the records alone.
    expect([at, page.bytes.byteLength]).toEqual([at, came.deref()!.byteLength]);
  }
});

function scanned(shape = PERSON, type?: 'before' | 'after') {
  const scan = pageScanner({
    name: 'persons',
    keys: ['items'],
    shapes: [shape],
    sizes: [],
    result: {
      shape: (page) =>
        type
          ? {
              kind: 'abstract',
              nullable: false,
              type: 'PersonsResult',
              of: (name) => (name === 'Persons' && page.kind === 'object' ? page : undefined),
              common: () => [],
            }
          : page,
    },
    idValues: 1,
    hasCount: false,
  });
  const items =
    shape === PERSON
      ? '[{"id":"1","firstName":"Ada"},{"id":"2","firstName":"Bo"}]'
      : '[{"firstName":"Ada"},{"firstName":"Bo"}]';
  const info = '{"hasNextPage":false,"endCursor":null}';
  const named = `"${TYPE_KEY}":"Persons"`;
  const head = type === 'before' ? `${named},` : '';
  const tail = type === 'after' ? `,${named}` : '';
  const bytes = ownBuffer(
    `{"data":{"persons":{${head}"items":${items},"pageInfo":${info}${tail}}}}`,
  );
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

test('of a batch of records whose ids are cut out, the bytes as they came are not kept', async () => {
  const { batch, came } = scannedBatch();
  await new Promise(setImmediate);
  collect();
  expect(came.deref()).toBeUndefined();
  expect(batch.records.map(String)).toEqual(['{"firstName":"Ada"}', 'undefined']);
  expect(batch.size).toBe('{"firstName":"Ada"},"_rsRecord1":null'.length);
});

function scannedBatch() {
  const records = '"_rsRecord0":{"id":"1","firstName":"Ada"},"_rsRecord1":null';
  const bytes = ownBuffer(`{"data":{${records}},"extensions":{"trace":"${'x'.repeat(1_000)}"}}`);
  const batch = atOnce(batchScanner({ ...PERSON, nullable: true })(bytes));
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
