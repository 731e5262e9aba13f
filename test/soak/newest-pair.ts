import { createSealer } from '../../src/tokens/seal.ts';
import { openSqliteStore } from '../../src/tokens/sqlite.ts';
import type { UpstreamReport } from './upstream-process.ts';

/**
 * Checks, after all processes have ended, that the service accepts the refresh token in the store. Spends the token.
 */
export async function newestPairProblems(
  path: string,
  serviceUrl: string,
  { exchanges, answeredTwice, astray }: UpstreamReport,
): Promise<string[]> {
  const problems: string[] = [];
  if (exchanges < 10) problems.push(`there were only ${exchanges} exchanges`);
  if (answeredTwice > 0) problems.push(`${answeredTwice} refresh tokens were answered twice`);
  if (astray > 0) problems.push(`${astray} exchanges were of a spent token, or got no answer`);
  const store = openSqliteStore(path, createSealer([]), { readOnly: true });
  const { state } = await store.read();
  await store.close();
  if (!state) return [...problems, 'the store is empty'];
  const { status } = await fetch(`${serviceUrl}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'refresh_token',
      refresh_token: state.pair.refreshToken,
    }),
  });
  return status === 200
    ? problems
    : [...problems, `the service does not take the refresh token in the store: ${status}`];
}
