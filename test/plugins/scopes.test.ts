import { useResponseCache } from '@graphql-yoga/plugin-response-cache';
import { parse } from 'graphql';
import { expect, test } from 'vitest';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { as, keys, peopleSdl, peopleService, scopes, SECRET } from '../schema/scopes/people.ts';

const { schema } = peopleService();

test('a response cache that all callers share does not answer a caller without the scope', async () => {
  await using world = await startGatewayOverFake(
    { schema },
    {
      snapshot: peopleSdl,
      overrides: scopes,
      config: { auth: keys },
      plugins: [useResponseCache({ session: () => null })],
    },
  );
  const query = '{ me { id email } }';
  const before = world.upstream.received.length;
  const all = await world.ask(query, {}, as('all'));
  expect(JSON.stringify(all.data)).toContain(SECRET);
  // It is kept.
  expect(await world.ask(query, {}, as('pii'))).toEqual(all);
  expect(world.upstream.received.length).toBe(before + 1);
  const few = await world.ask(query, {}, as('few'));
  expect(JSON.stringify(few)).not.toContain(SECRET);
  expect(few.errors!.map(({ extensions }) => extensions)).toEqual([{ code: 'FORBIDDEN' }]);
});

test('a plugin that changes the document cannot add a field that the caller may not read', async () => {
  await using world = await startGatewayOverFake(
    { schema },
    {
      snapshot: peopleSdl,
      overrides: scopes,
      config: { auth: keys },
      plugins: [
        {
          onParse: ({ params, setParsedDocument }) => {
            if (params.source) setParsedDocument(parse('{ me { name email } }'));
          },
        },
      ],
    },
  );
  const ask = (key: 'all' | 'few') => world.ask('{ me { name } }', {}, as(key));
  expect(JSON.stringify(await ask('all'))).toContain(SECRET);
  const few = await ask('few');
  expect(JSON.stringify(few)).not.toContain(SECRET);
  expect(few.errors!.map(({ extensions }) => extensions)).toEqual([{ code: 'FORBIDDEN' }]);
});
