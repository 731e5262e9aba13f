import { createLocalJWKSet } from 'jose';
import pino from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { apiKeyOwners } from '../../../src/http/auth/admission.ts';
import { bearerTokenOwners } from '../../../src/http/auth/bearer-tokens.ts';
import type { Caller } from '../../../src/http/exchange.ts';
import { ManualClock, SECOND } from '../../support/random/manual-clock.ts';
import { entryFor } from '../../support/gateway/api-key.ts';
import { startIssuer, type Issuer } from './issuer.ts';

let issuer: Issuer;
beforeAll(async () => {
  issuer = await startIssuer();
});
afterAll(() => issuer[Symbol.asyncDispose]());

test('a key finds its owner at any position in the list, and a similar key finds none', () => {
  const keys = ['a', 'A', 'a ', '', 'ä', 'a\0', 'aa'];
  for (const [left, others] of keys.map((key, index) => [key, keys.toSpliced(index, 1)] as const)) {
    const ownerOf = apiKeyOwners(others.map((key, index) => entryFor(key, `c${index}`, 'read')));
    expect(ownerOf(left)).toBeUndefined();
    others.forEach((key, index) => {
      expect(ownerOf(key)).toEqual({ name: `key:c${index}`, scopes: new Set(['read']) });
    });
  }
});

test('a token is valid from its nbf to its exp, by the gateway’s clock, with 30 s of leeway', async () => {
  const clock = new ManualClock();
  const start = clock.now() / 1000;
  const owner = ownerBy(clock);
  const isTaken = async (claims: object) => (await owner(await issuer.token(claims))) !== undefined;
  for (const [claims, taken] of [
    [{ exp: start - 29 }, true],
    [{ exp: start - 30 }, false],
    [{ nbf: start + 30, exp: start + 60 }, true],
    [{ nbf: start + 31, exp: start + 60 }, false],
  ] as const) {
    expect([claims, await isTaken(claims)]).toEqual([claims, taken]);
  }
  clock.jump(SECOND);
  expect(await isTaken({ exp: start - 29 })).toBe(false);
  expect(await isTaken({ nbf: start + 31, exp: start + 60 })).toBe(true);
});

test.each([
  [{ scope: 'read write' }, ['read', 'write']],
  [{ scope: 'read  graph  openid' }, ['read', 'graph']],
  [{ scope: undefined, scp: 'drain router' }, ['drain', 'router']],
  [{ scope: undefined, scp: ['read', 'write drain', 7, null] }, ['read']],
  [{ scope: 'read', scp: ['write'] }, ['read', 'write']],
  [{ scope: 'READ reader read+write toString' }, []],
  [{ scope: { read: true }, scp: 1 }, []],
])('of the claims %j only known scopes are kept', async (claims, scopes) => {
  const { token } = issuer;
  const clock = new ManualClock();
  const caller = await ownerBy(clock)(await token({ exp: clock.now() / 1000 + 60, ...claims }));
  expect(caller?.name).toBe('sub:ada');
  expect(caller!.scopes).toEqual(new Set(scopes));
});

test('the reason for refusing a token is logged, without any part of the token or its subject', async () => {
  const lines: string[] = [];
  const owner = ownerBy(new ManualClock(), lines);
  const token = await issuer.token({ aud: 'elsewhere', sub: 'ada-lovelace' });
  expect(await owner(token)).toBeUndefined();
  expect(await owner('nonsense')).toBeUndefined();
  expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
    {
      requestId: 'of-the-request',
      level: 30,
      code: 'ERR_JWT_CLAIM_VALIDATION_FAILED',
      claim: 'aud',
    },
    { level: 30, code: 'ERR_JWS_INVALID' },
  ]);
  for (const part of [...token.split('.'), 'ada', 'elsewhere', 'nonsense']) {
    expect(lines.join()).not.toContain(part);
  }
});

function ownerBy(clock: ManualClock, lines: string[] = []) {
  const owner = bearerTokenOwners({
    ...issuer.jwt,
    scopes: [...issuer.jwt.scopes, 'graph'],
    keys: createLocalJWKSet({ keys: issuer.keys }),
    clock,
    log: pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) }),
  });
  const caller = {
    requestId: 'of-the-request',
    hasLeft: false,
    signal: new AbortController().signal,
  };
  return async (token: string) => (await owner(token, caller)) as Caller | undefined;
}
