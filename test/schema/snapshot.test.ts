import { buildSchema } from 'graphql';
import { describe, expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';

const PERSON = 'type Person { id: ID! name: String }';

describe('the SDL of a subgraph as a snapshot', () => {
  test.each([
    [
      'Federation 2, with @link',
      `extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key", "@shareable", { name: "@override", as: "@takenFrom" }])
      type Query { me: Person @shareable }
      type Person @key(fields: "id") @key(fields: "name") @federation__tag(name: "x") {
        id: ID! name: String @takenFrom(from: "other") @federation__external
      }`,
    ],
    [
      'Federation 2, the link under another name',
      `schema @link(url: "https://specs.apollo.dev/federation/v2.3", as: "fed") { query: Query }
      type Query { me: Person @fed__shareable } type Person @fed__key(fields: "id") { id: ID! name: String }`,
    ],
    [
      'Federation 1, with extensions of what other subgraphs define',
      `extend type Query { me: Person }
      extend type Person @key(fields: "id") { id: ID! @external }
      extend type Person { name: String @requires(fields: "id") }`,
    ],
    [
      'one that defines the directives itself',
      `directive @key(fields: String!) on OBJECT
      type Query { me: Person } type Person @key(fields: "id") { id: ID! name: String }`,
    ],
  ])('the types and fields of any snapshot are served: %s', async (_, snapshot) => {
    await using gateway = await startGatewayOverSandbox(
      { schema: buildSchema(`type Query { me: Person } ${PERSON}`) },
      { snapshot },
    );
    const { data, errors } = await gateway.ask('{ me { id name } _service { sdl } }');
    expect(errors).toBeUndefined();
    expect(data).toMatchObject({ me: null });
    expect((data as Record<string, { sdl: string }>)['_service']!.sdl).toContain(
      'type Person @key(fields: "id", resolvable: false) {\n  id: ID!\n  name: String\n}',
    );
  });

  test('it is refused if it hides or protects something that the gateway would serve', async () => {
    const message = await refusalOf(`
      extend schema @link(url: "https://specs.apollo.dev/federation/v2.9", import: ["@key", { name: "@inaccessible", as: "@hidden" }])
      type Query { me: Person }
      type Person @key(fields: "id") { id: ID! salary: Int @federation__policy(policies: [["hr"]]) ssn: Int @hidden }
    `);
    expect(message).toMatch(/\(upstream\.graphql, line 4.*@federation__policy and @hidden/);
    expect(message).toContain('Remove the fields that callers must not see');
    expect(message).not.toContain('@key');
  });
});

describe('a snapshot that cannot be served is refused with one message that says what to do', () => {
  test('undefined directives are listed once, with their number of uses', async () => {
    const fields = Array.from({ length: 24 }, (_, index) => `f${index}: Int @auth(role: "x")`);
    const message = await refusalOf(`type Query {\n${fields.join('\n')}\nlast: Int @once\n}`);
    expect(message).toBe(
      'The schema snapshot (upstream.graphql, line 2) uses directives that it does not define: ' +
        '@auth (24 times), @once. Define them in the file, or remove them: the gateway ignores them.',
    );
  });

  test('only the first of many mistakes are listed', async () => {
    const fields = Array.from({ length: 24 }, (_, index) => `f${index}: Missing${index}`);
    const message = await refusalOf(`type Query { ${fields.join(' ')} }`);
    expect(message.match(/Unknown type/g)).toHaveLength(5);
    expect(message).toContain('and 19 more');
    expect(message).toContain('set RECRUITING_SCHEMA to another one');
  });

  test('fields and arguments with an introspection type are listed', async () => {
    const message = await refusalOf(`
      type Query { values: [__EnumValue!] of(kind: __TypeKind, by: By): Int }
      input By { kind: __TypeKind }
    `);
    expect(message).toMatch(
      /^The schema snapshot \(upstream\.graphql\) has .* Query\.values, Query\.of\(kind:\), By\.kind\. Remove them/,
    );
  });
});

async function refusalOf(snapshot: string): Promise<string> {
  return startGatewayOverSandbox({}, { snapshot, config: { schemaPath: 'upstream.graphql' } }).then(
    () => expect.fail('It was not refused.'),
    (error: Error) => error.message,
  );
}
