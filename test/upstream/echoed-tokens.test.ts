import { expect, test } from 'vitest';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { json, text, type Reply } from '../support/imitations/scripted.ts';
import { fullSdl, fullService } from '../support/imitations/honest.ts';

const ME = '{ me { id name ... on Candidate { extra } } }';

/** Answers of a service that repeats the token of the request. */
const echoes: [string, (token: string) => Reply][] = [
  ['in data', (token) => json({ data: { me: me({ name: `Bearer ${token}` }) } })],
  ['in a custom scalar', (token) => json({ data: { me: me({ extra: { [token]: [token] } }) } })],
  ['in the message of an error', (token) => json({ errors: [{ message: `No: ${token}!` }] })],
  [
    'in the extensions of an error',
    (token) => json({ errors: [{ message: 'No.', extensions: { [token]: { headers: token } } }] }),
  ],
  ['in the code of an error', (token) => json({ errors: [{ extensions: { code: token } }] })],
  [
    'in the path of an error',
    (token) => json({ data: null, errors: [{ message: 'No.', path: ['me', token] }] }),
  ],
  ['in headers', (token) => json({ data: { me: me({}) } }, 200, { 'x-echo': token, etag: token })],
  ['in Retry-After', (token) => json({}, 429, { 'retry-after': token })],
  ['in Location', (token) => text(token, 307, { location: `/${token}` })],
  ['in a refusal', (token) => json({ type: token, detail: token }, 401)],
  ['in a 5xx', (token) => json({ errors: [{ message: token }] }, 500)],
  ['in HTML', (token) => text(`<html>${token}</html>`)],
];

test('a caller never sees the token that a request was sent with, however the service echoes it', async () => {
  const { schema } = fullService();
  await using gateway = await startGatewayOverFake({ schema }, { snapshot: fullSdl });
  for (const [where, echo] of echoes) {
    let token = '';
    gateway.upstream.answer((response, received, sandbox) => {
      token = received.token;
      return echo(token)(response, received, sandbox);
    });
    const response = await gateway.fetch('/graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: ME }),
    });
    const received = JSON.stringify([...response.headers]) + (await response.text());
    expect(token, where).toMatch(/^sandbox-access-.{20}/);
    expect(received, where).not.toContain(token);
    expect(JSON.stringify(gateway.logged), where).not.toContain(token);
  }
});

test('only the token is removed from an answer that contains it', async () => {
  const { schema } = fullService();
  await using gateway = await startGatewayOverFake({ schema }, { snapshot: fullSdl });
  gateway.upstream.answer((response, received, sandbox) =>
    json({
      data: { me: me({ extra: { sent: [`Bearer ${received.token}, twice: ${received.token}`] } }) },
      errors: [{ message: `Who is ${received.token}?`, path: ['me', 'name'] }],
    })(response, received, sandbox),
  );
  expect(await gateway.ask(ME)).toMatchObject({
    data: { me: { id: 1, extra: { sent: ['Bearer [removed], twice: [removed]'] } } },
    errors: [{ message: 'Who is [removed]?', path: ['me', 'name'] }],
  });
});

test('a token at the border of two parts of a large answer is removed', async () => {
  const { schema } = fullService();
  await using gateway = await startGatewayOverFake({ schema }, { snapshot: fullSdl });
  // A large answer is searched in parts of 256 KiB.
  const border = 256 * 1024;
  gateway.upstream.answer((response, received, sandbox) => {
    const [head, tail] = JSON.stringify({ data: { me: me({ extra: '@' }) } }).split('@');
    const before = 'x'.repeat(border - 10 - head!.length);
    return text(head! + before + received.token + tail!)(response, received, sandbox);
  });
  const { data } = await gateway.ask<{ me: { extra: string } }>(ME);
  expect(data.me.extra.slice(-11)).toBe('xx[removed]');
});

function me(fields: Record<string, unknown>) {
  return { _rsType: 'Candidate', id: 1, name: null, extra: null, ...fields };
}
