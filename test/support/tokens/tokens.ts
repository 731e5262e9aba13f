import type { ServerResponse } from 'node:http';
import { onTestFinished } from 'vitest';
import type { ServiceOptions } from '../../service/service.ts';
import type { Exchange, TokenFault } from '../../service/token-answers.ts';
import type { Pair } from '../../../src/tokens/pair.ts';
import { startFakeUpstream, type FakeUpstream } from '../imitations/scripted.ts';

export const PERSON = '{ persons(first: 1) { items { id } } }';

/** A pair that no service issued. */
export function pairOf(name: string, lives: Partial<Pair> = {}): Pair {
  return {
    accessToken: `access-${name}`,
    refreshToken: `refresh-${name}`,
    expiresIn: 86_400,
    refreshTokenExpiresIn: 10_368_000,
    name: 'Test',
    ...lives,
  };
}

/** A service that is closed after the test. */
export async function startScripted(options: ServiceOptions = {}): Promise<FakeUpstream> {
  const service = await startFakeUpstream({ persons: 3, ...options });
  onTestFinished(() => service[Symbol.asyncDispose]());
  return service;
}

/** Answers an exchange without processing anything. */
export function reply(
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): TokenFault {
  if (typeof body !== 'string') return { status, headers, body: JSON.stringify(body) };
  return { status, headers: { 'content-type': 'text/html', ...headers }, body };
}

/** Refresh tokens that were sent again after the answer that spent them. */
export function sentAgain(exchanges: readonly Exchange[]): string[] {
  const spent = new Set<string>();
  return exchanges.flatMap(({ refreshToken, outcome }) => {
    const again = spent.has(refreshToken);
    if (outcome === 'answered') spent.add(refreshToken);
    return again ? [refreshToken] : [];
  });
}

export function json(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response
    .writeHead(status, { 'content-type': 'application/json', ...headers })
    .end(JSON.stringify(body));
}
