/** A setting with a slip in its name, in commands: test/config/settings.test.ts has those of a start. */
import { expect, test } from 'vitest';
import { startWithTokens } from './tokens-operator.ts';

test.each([['status'], ['refresh'], ['import', '<link>']])(
  '`tokens %s` sends and changes nothing if a setting of the tokens is misspelled',
  async (...args) => {
    const { tokens, service, stored } = await startWithTokens();
    const before = await stored();
    const link = service.makeNewSet();
    const { tokenLink } = service.sandbox.stats.requests;
    const typed = args.map((arg) => arg.replace('<link>', link));
    const env = { TOKEN_STORE_KEYS: Buffer.alloc(32, 1).toString('base64') };
    const { code, stdout, stderr } = await tokens(typed, { env });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('TOKEN_STORE_KEYS is not a setting. Correct the name');
    expect(stderr).not.toContain(env.TOKEN_STORE_KEYS);
    expect(service.exchanges).toHaveLength(1);
    expect(service.sandbox.stats.requests.tokenLink).toBe(tokenLink);
    expect(await stored()).toEqual(before);
  },
);
