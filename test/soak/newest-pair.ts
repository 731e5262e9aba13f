import { createSealer } from '../../src/tokens/seal.ts';
import { openSqliteStore } from '../../src/tokens/sqlite.ts';
import { KEYS, type Operator } from './operator.ts';
import type { UpstreamReport } from './upstream-process.ts';

/**
 * Checks, after all processes have ended, that the service accepts the refresh token in the store. Spends the token.
 */
export async function newestPairProblems(
  { rescued, command, store: path, env }: Operator,
  { answeredTwice, astray }: UpstreamReport,
): Promise<string[]> {
  const problems: string[] = [];
  if (answeredTwice > 0) problems.push(`${answeredTwice} refresh tokens were answered twice`);
  if (astray > 0) problems.push(`${astray} exchanges were of a spent token, or got no answer`);
  if (rescued() > 0) {
    const { code, said } = await command(['tokens', 'recover']);
    if (code !== 0) problems.push(`\`tokens recover\` ended with exit code ${code}: ${said}`);
  }
  const sealer = createSealer([Buffer.from(KEYS[0]!, 'base64')]);
  const store = openSqliteStore(path, sealer, { readOnly: true });
  const { state } = await store.read();
  await store.close();
  if (!state) return [...problems, 'the store is empty'];
  const { status } = await fetch(`${env['RECRUITING_URL']}/oauth/token`, {
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
