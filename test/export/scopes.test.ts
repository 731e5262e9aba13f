import { expect, test } from 'vitest';
import { listeningGateway } from '../support/gateway/listening-gateway.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { keys, peopleSdl, peopleService, scopes, SECRET } from '../schema/scopes/people.ts';

const { schema } = peopleService();

test('an export with a key that lacks a scope of a field fails, and names the scope', async () => {
  await using gateway = await startGatewayOverFake(
    { schema },
    { snapshot: peopleSdl, overrides: scopes, config: { auth: keys } },
  );
  await using door = await listeningGateway(gateway);
  const run = (key: string, fields: string) =>
    runHere(['export', 'people', '--fields', fields, '--url', door.url], { EXPORT_API_KEY: key });

  const all = await run('all', 'id email');
  expect(all.code).toBe(0);
  expect(all.stdout.match(new RegExp(`"email":"${SECRET}`, 'g'))).toHaveLength(60);

  const few = await run('few', 'id email');
  expect(few.code).not.toBe(0);
  expect(few.stdout).not.toContain(SECRET);
  expect(few.stdout).not.toContain('"email"');
  expect(few.stderr).toContain('Person.email needs the scope "pii"');

  const plain = await run('few', 'id name');
  expect(plain.code).toBe(0);
  expect(plain.stdout.trimEnd().split('\n')).toHaveLength(60);
});
