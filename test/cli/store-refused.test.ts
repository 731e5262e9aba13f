/** Stores that a gateway or a command cannot use, and the way back that it names. */
import { expect, test } from 'vitest';
import { runHere } from '../support/gateway/run-here.ts';
import { startOperator, type Operator } from './tokens-operator.ts';

const [KEY, OTHER] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64'));

test.each([
  ['no key', {}],
  ['another key', { TOKEN_STORE_KEY: OTHER! }],
])(
  'a gateway with %s for its store ends as after a mistake in the settings, so that nothing restarts it',
  async (_, settings) => {
    const { env } = await startSealed();
    const { code, stderr } = await runHere([], { ...env, ALLOW_ANONYMOUS: 'true', ...settings });
    expect(code).toBe(2);
    expect(stderr).toMatch(/cannot be used .* Set TOKEN_STORE_KEY as it is set for the gateway/);
  },
);

/** An operator whose store is sealed with KEY, and has tokens. */
async function startSealed(): Promise<Operator> {
  const operator = await startOperator();
  const env = { TOKEN_STORE_KEY: KEY! };
  const { code } = await operator.tokens(['import', operator.service.tokenLink], { env });
  expect(code).toBe(0);
  return operator;
}
