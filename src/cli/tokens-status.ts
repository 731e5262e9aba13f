import { authCheck, type AccessVerdict } from '../tokens/service/auth-check.ts';
import { waitingPairs } from '../tokens/store/rescue.ts';
import { tokenReport, type TokenReport } from '../tokens/token-report.ts';
import { ADVICE, FATAL } from '../tokens/token-health.ts';
import { duration, printable, type Terminal } from './terminal.ts';
import { noTokens, withTokenStore } from './token-session.ts';

const HISTORY = 1_000;
/** Lines of the audit trail that are printed. */
const TRAIL = 5;

/** Prints the state of the tokens. @returns the exit code: 0 healthy, 1 needs attention, 2 lost, moved or missing */
export async function tokensStatus({ json }: { json: boolean }, terminal: Terminal) {
  return withTokenStore(terminal, 'inspect', async (session) => {
    const { store, stored, rescueFolder, identity } = session;
    const waiting = await waitingPairs(rescueFolder, store, identity);
    const report = tokenReport({
      store: store.description,
      stored,
      history: await store.history(HISTORY),
      waiting,
      unwritable: store.unwritable !== undefined,
    });
    const text = json ? `${JSON.stringify(report)}\n` : textOf(report, store.notices);
    terminal.stdout.write(text);
    if (report.troubles.some((trouble) => FATAL.has(trouble))) return 2;
    return report.troubles.length > 0 ? 1 : 0;
  });
}

function textOf(report: TokenReport, notices: readonly string[]): string {
  const facts: [string, string | null][] = [
    ['State', STATES[report.state]],
    ['Store', report.store],
    ['Service', report.service],
    ['Token set', report.name === null ? null : printable(report.name)],
    ['Moved to', report.movedTo],
    [
      'Generation',
      report.generation === null
        ? null
        : `${report.generation} (refresh token ${report.fingerprint})`,
    ],
    ['Access token', left(report.accessTokenSecondsLeft)],
    [
      'Refresh token',
      report.state === 'lost' ? 'spent, revoked or expired' : left(report.refreshTokenSecondsLeft),
    ],
    [
      'Refreshes',
      report.refusesEarly ? 'wait for the expiry: the service refuses earlier ones' : null,
    ],
    ['Last refresh', report.generation === null ? null : (report.lastRotation ?? 'never')],
    [
      'Failures',
      report.lastFailure
        ? `${report.failures} since then, the last ${report.lastFailure.at} (${report.lastFailure.outcome})`
        : null,
    ],
    ['Now', report.exchangeUnderWay ? 'a process is refreshing it' : null],
    ...report.rescueFiles.map((path): [string, string] => ['Rescue file', path]),
  ];
  const lines = facts
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `  ${name.padEnd(15)} ${value}`);
  const advice = report.troubles.map((trouble) => `\n  ${trouble}: ${ADVICE[trouble]}`);
  const trail = report.history.slice(0, TRAIL).map(trailLine);
  return [
    ...lines,
    ...advice,
    ...notices.map((notice) => `\n  ${notice}`),
    ...(trail.length > 0 ? ['\n  Recent events', ...trail] : []),
    '',
  ].join('\n');
}

function trailLine({
  at,
  generation,
  outcome,
  latencyMs,
  replica,
}: TokenReport['history'][number]) {
  const took = latencyMs === null ? '' : `, ${latencyMs} ms`;
  return `  ${at}  generation ${generation}: ${outcome}${took}, by ${replica}`;
}

const STATES: Record<TokenReport['state'], string> = {
  healthy: 'healthy',
  attention: 'needs attention',
  lost: 'LOST',
  moved: 'MOVED to another store',
  missing: 'MISSING',
};

function left(seconds: number | null): string | null {
  if (seconds === null) return null;
  return seconds > 0 ? `${duration(seconds)} left` : 'has expired';
}

/** Asks the service whether it accepts the current access token. @returns the exit code: 0 if it does, 1 if not */
export async function tokensCheck({ json }: { json: boolean }, terminal: Terminal) {
  return withTokenStore(terminal, 'inspect', async (session) => {
    const { stored, config } = session;
    if (!stored) throw await noTokens(session);
    const { baseUrl } = stored;
    const proxy = terminal.proxyFor(baseUrl);
    const checkAccess = authCheck({ baseUrl, agent: config.agent, proxy });
    const verdict = await checkAccess(stored.pair.accessToken);
    const service = new URL(stored.baseUrl).host;
    const report = { service, generation: stored.generation, ...verdict };
    terminal.stdout.write(
      json ? `${JSON.stringify(report)}\n` : `${sentenceOn(verdict, service)}\n`,
    );
    return verdict.kind === 'works' ? 0 : 1;
  });
}

function sentenceOn(verdict: AccessVerdict, service: string): string {
  if (verdict.kind === 'works') return `${service} accepts the access token.`;
  if (verdict.kind === 'unknown') {
    return `${service} gave no clear answer (${verdict.why}). Nothing is wrong with the tokens as far as this shows. Check RECRUITING_URL and the way to it, and try again.`;
  }
  return verdict.detail === 'token_expired'
    ? `${service} reports that the access token has expired. Run \`tokens refresh\`; a running gateway does it by itself.`
    : `${service} refuses the access token (${verdict.detail}): the administrator who made it was probably demoted or blocked, ` +
        'or the token was revoked. Have the account checked; if it needs a new token, run `tokens import <link> --replace`.';
}
