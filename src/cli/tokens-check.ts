import { authCheck, type AccessVerdict } from '../tokens/service/auth-check.ts';
import type { Terminal } from './terminal.ts';
import { noTokens, withTokenStore } from './token-session.ts';

/** Asks the service whether it takes the current access token; gives the exit code: 0 it does, 1 not. */
export async function tokensCheck({ json }: { json: boolean }, terminal: Terminal) {
  return withTokenStore(terminal, 'look', async (session) => {
    const { stored, config } = session;
    if (!stored) throw await noTokens(session);
    const { baseUrl } = stored;
    const proxy = terminal.proxyFor(baseUrl);
    const checkAccess = authCheck({ baseUrl, agent: config.agent, proxy });
    const verdict = await checkAccess(stored.pair.accessToken);
    const service = new URL(stored.baseUrl).host;
    const report = { service, generation: stored.generation, ...verdict };
    terminal.stdout.write(json ? `${JSON.stringify(report)}\n` : `${sentence(verdict, service)}\n`);
    return verdict.kind === 'works' ? 0 : 1;
  });
}

function sentence(verdict: AccessVerdict, service: string): string {
  if (verdict.kind === 'works') return `${service} takes the access token.`;
  if (verdict.kind === 'unknown') {
    return `${service} gave no clear answer (${verdict.why}). Nothing is wrong with the tokens as far as this tells. Check RECRUITING_URL and the way to it, and try again.`;
  }
  return verdict.detail === 'token_expired'
    ? `${service} says that the access token has expired. Run \`tokens refresh\`; a running gateway does it by itself.`
    : `${service} refuses the access token (${verdict.detail}): the administrator who made it was probably demoted or blocked, ` +
        'or the token was revoked. Have the account checked; if it needs a new token, run `tokens import <link> --replace`.';
}
