import { buildSchema } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { canonical } from './exact-json.ts';
import { sideBySide, startSideBySide, type SideBySide } from './side-by-side.ts';

/** Names with a meaning in JavaScript or its libraries, but not in GraphQL. */
const NAMES =
  'then constructor toString toJSON hasOwnProperty prototype length data errors extensions query variables null'.split(
    ' ',
  );

const FIELDS = NAMES.map((name) => `${name}: String`).join(' ');
const INPUTS = NAMES.map((name) => `${name}: Json`).join(' ');
const ECHOES = NAMES.map((name) => `echo_${name}(${name}: Json, in: In): Json`).join(' ');

let answer: string;
let canned: SideBySide;
let echoing: SideBySide;
beforeAll(async () => {
  const sdl = `
    scalar Json
    input In { ${INPUTS} }
    type Below { ${FIELDS} a: String below: [Below] }
    type Query { ${FIELDS} a: String below: Below json: Json list: [Json!]! ${ECHOES} }`;
  canned = await startSideBySide({ schema: buildSchema(sdl), service: () => answer });
  const echoes = NAMES.map((name) => [`echo_${name}`, (args: object) => args]);
  const deep = { below: [{ a: 'deep' }] };
  const rootValue = { a: 'there', below: deep, ...Object.fromEntries(echoes) };
  echoing = await startSideBySide({ schema: buildSchema(sdl), service: { rootValue } });
});
afterAll(async () => {
  await canned[Symbol.asyncDispose]();
  await echoing[Symbol.asyncDispose]();
});

/** Expects this answer from the service and from the gateway. */
async function expectPassedOn(data: string, query: string): Promise<void> {
  answer = `{"data":${data}}`;
  const { through } = await canned.expectSame({ query });
  expect(through.data).toBe(canonical(data));
}

test('fields of these names are answered', async () => {
  const values = NAMES.map((name) => `"${name}":"there"`).join();
  const all = NAMES.join(' ');
  await expectPassedOn(
    `{${values},"below":{"below":[{${values},"a":"2"},null],${values.replaceAll('"there"', 'null')}}}`,
    `{ ${all} below { below { ${all} a } ${all} } }`,
  );
});

test('aliases of these names are answered', async () => {
  for (const name of NAMES) {
    const { through } = await echoing.expectSame({
      query: `{ ${name}: a below { ${name}: below { ${name}: a } } }`,
    });
    expect(through.data).toBe(`{"${name}":"there","below":{"${name}":[{"${name}":"deep"}]}}`);
    await echoing.expectSame({ query: `{ ${name}: below { ${name}: a } a }` });
  }
});

test('JSON scalars with these keys are passed on', async () => {
  for (const name of [...NAMES, '__proto__', '', '0', 'é"\\', '\u0000']) {
    const key = JSON.stringify(name);
    const value = `{"b":{${key}:{"x":[]}},${key}:"there","a":[{${key}:null}]}`;
    await expectPassedOn(`{"json":${value},"list":[${value}]}`, '{ json list }');
  }
});

test('arguments, variables and input fields of these names reach the service', async () => {
  for (const name of NAMES) {
    await echoing.expectSame({
      query: `query ($${name}: Json, $in: In) { echo_${name}(${name}: $${name}, in: $in) }`,
      variables: { [name]: { [name]: 1 }, in: { [name]: [name] } },
    });
  }
});

test('upstream types keep their names even if the gateway uses these names itself', async () => {
  const schema = buildSchema(
    `type Query { pageInfo: PageInfo service: _Service entity: _Entity any(in: _Any): _Any }
     type PageInfo { a: Int }
     type _Service { sdl: String }
     scalar _Any
     union _Entity = PageInfo`,
    { assumeValid: true },
  );
  const rootValue = {
    pageInfo: { a: 1 },
    service: { sdl: 'of its own' },
    entity: { __typename: 'PageInfo', a: 2 },
    any: ({ in: value }: { in: unknown }) => value,
  };
  const world = await sideBySide({ schema, service: { rootValue } });
  await world.expectSame({
    query: '{ pageInfo { ...F } } fragment F on PageInfo { a __typename }',
  });
  await world.expectSame({ query: '{ pageInfo { __typename t: __typename } }' });
  await world.expectSame({ query: '{ entity { ... on PageInfo { a __typename } } }' });
  await world.expectSame({ query: '{ __type(name: "PageInfo") { name fields { name } } }' });
});

test('upstream types called _Service and _Any, which every subgraph has, are served under other names', async () => {
  const schema = buildSchema(
    `type Query { service: _Service any(in: _Any): _Any }
     type _Service { sdl: String }
     scalar _Any`,
    { assumeValid: true },
  );
  const rootValue = {
    service: { sdl: 'own' },
    any: ({ in: value }: { in: unknown }) => value,
  };
  const world = await sideBySide({ schema, service: { rootValue } });
  const { through } = await world.both({
    query: '{ service { ... on Upstream_Service { sdl __typename } } }',
  });
  expect(through.data).toBe('{"service":{"sdl":"own","__typename":"Upstream_Service"}}');
  const echoed = await world.through({
    query: 'query ($in: Upstream_Any) { any(in: $in) }',
    variables: { in: { __typename: 'PageInfo' } },
  });
  expect(echoed.data).toBe('{"any":{"__typename":"PageInfo"}}');
});
