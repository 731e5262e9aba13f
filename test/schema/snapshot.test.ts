import { describe, expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';

describe('a snapshot that cannot be served is refused with one message that says what to do', () => {
  test('a directive that the snapshot does not define is named', async () => {
    const message = await refusalOf('type Query { salary: Int @inaccessible }');
    expect(message).toBe(
      'The schema snapshot is not a valid GraphQL schema (upstream.graphql): Unknown directive "@inaccessible". ' +
        'Correct the file, or set RECRUITING_SCHEMA to another one.',
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
