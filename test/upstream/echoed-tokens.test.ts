import { expect, test } from 'vitest';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { fullSdl, fullService } from '../service/full.ts';
import { json, text } from '../service/replies.ts';

const ME = '{ me { id name ... on Candidate { extra } } }';

test('only the token is removed from an answer that contains it', async () => {
  const { schema } = fullService();
  await using gateway = await startGatewayOverService({ schema }, { snapshot: fullSdl });
  gateway.service.answer((response, received, sandbox) =>
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
  await using gateway = await startGatewayOverService({ schema }, { snapshot: fullSdl });
  // A large answer is searched in parts of 256 KiB.
  const border = 256 * 1024;
  gateway.service.answer((response, received, sandbox) => {
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
