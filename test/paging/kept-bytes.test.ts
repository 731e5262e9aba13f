import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import type { ObjectShape } from '../../src/answers/shape.ts';
import { pageScanner } from '../../src/plans/pages/scan-page.ts';

const PERSON: ObjectShape = {
  kind: 'object',
  nullable: false,
  type: 'Person',
  fields: [
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
  ],
};

test('of a page whose ids are cut out, the bytes as they came are not kept', async () => {
  const { page, came } = scanned();
  expect(page.piece(0, 0, 1).toString()).toBe('{"firstName":"Ada"},{"firstName":"Bo"}');
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  // What a WeakRef referred to in this turn is not collected before its end.
  await new Promise(setImmediate);
  collect();
  expect(came.deref()).toBeUndefined();
  expect(page.items.map(({ identity }) => identity)).toEqual(['Person:1', 'Person:2']);
  expect(page.identities!.isJoinable).toBe(true);
});

function scanned() {
  const scan = pageScanner('persons', ['items'], [PERSON], []);
  const items = '[{"id":"1","firstName":"Ada"},{"id":"2","firstName":"Bo"}]';
  const info = '{"hasNextPage":false,"endCursor":null}';
  const bytes = ownBuffer(`{"data":{"persons":{"items":${items},"pageInfo":${info}}}}`);
  const page = scan(bytes)?.page;
  if (!page || !('piece' in page)) throw new Error('The scanner did not take the page.');
  return {
    page: page as typeof page & { piece: (...at: number[]) => Buffer },
    came: new WeakRef(bytes),
  };
}

function ownBuffer(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}
