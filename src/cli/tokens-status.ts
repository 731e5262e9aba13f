import { authCheck, type AccessVerdict } from '../tokens/service/auth-check.ts';
import { mayFollow, waitingPairs, type WaitingPair } from '../tokens/store/rescue.ts';
import { mayHaveSuccessor, stateOf, waitsForExpiry } from '../tokens/held-tokens.ts';
import { ADVICE, FATAL, troublesOf, type Trouble } from '../tokens/token-health.ts';
import {
  CLAIM_LIFE_MS,
  type HistoryEntry,
  type StoredTokens,
} from '../tokens/store/token-store.ts';
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
      layout: store.layout?.now ?? null,
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
    ['Store layout', report.layout === null ? null : String(report.layout)],
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
        ? `${report.failures} since ${report.lastRotation === null ? 'the import' : 'then'}, ` +
          `the last ${report.lastFailure.at} (${outcomeText(report.lastFailure.outcome)})`
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
    ...(report.generation === null ? [] : [`\n  ${NOT_ASKED}`]),
    ...notices.map((notice) => `\n  ${notice}`),
    ...(trail.length > 0 ? ['\n  Recent events', ...trail] : []),
    '',
  ].join('\n');
}

/** A running exchange does not count as failed, so one that has only begun was cut off. */
function outcomeText(outcome: string): string {
  return outcome === 'begun' ? 'begun; its process ended before the outcome was saved' : outcome;
}

const NOT_ASKED =
  'The service was not asked: `tokens check` shows whether it accepts the access token.';

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

/**
 * Calls the service to find out whether it accepts the current access token.
 *
 * @returns the exit code: 0 if it does, 1 if not
 */
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

/** What `tokens status` reports. Contains no secrets. */
interface TokenReport {
  readonly state: 'healthy' | 'attention' | 'lost' | 'moved' | 'missing';
  readonly store: string;
  /** Of the store; null while it has no tokens. Earlier versions cannot open a later one. */
  readonly layout: number | null;
  readonly service: string | null;
  readonly name: string | null;
  readonly generation: number | null;
  /** First characters of the refresh token's fingerprint. */
  readonly fingerprint: string | null;
  readonly accessTokenSecondsLeft: number | null;
  readonly refreshTokenSecondsLeft: number | null;
  /** Whether the service exchanges no refresh token before its access token has expired, as far as is known. */
  readonly refusesEarly: boolean;
  /** ISO 8601; null when this set was not refreshed since its import. */
  readonly lastRotation: string | null;
  /** Exchanges of the refresh token in use that gave no pair. */
  readonly failures: number;
  readonly lastFailure: { readonly at: string; readonly outcome: string } | null;
  readonly exchangeUnderWay: boolean;
  /** The store that the set was moved to. */
  readonly movedTo: string | null;
  readonly troubles: readonly Trouble[];
  /** Rescue files that hold a pair which is not in the store, or that cannot be read. */
  readonly rescueFiles: readonly string[];
  /** The audit trail, newest first: imports, exchanges and moves, with the process and the outcome. */
  readonly history: readonly {
    /** ISO 8601. */
    readonly at: string;
    readonly generation: number;
    readonly attempt: string;
    readonly outcome: string;
    readonly latencyMs: number | null;
    readonly replica: string;
  }[];
}

const SHOWN = 20;

interface ReportFacts {
  store: string;
  layout: number | null;
  stored: StoredTokens | null;
  /** Newest first. */
  history: readonly HistoryEntry[];
  waiting: readonly WaitingPair[];
  /** The store cannot be written. */
  unwritable: boolean;
}

const RENEWALS = new Set<HistoryEntry['outcome']>([
  'rotated',
  'same-refresh-token',
  'without-refresh-token',
  'without-access-token',
]);

const BEGINNINGS = new Set<HistoryEntry['outcome']>([...RENEWALS, 'imported', 'moved-in']);

const FAILURES = new Set<HistoryEntry['outcome']>([
  'begun',
  'uncertain',
  'unsent',
  'rate-limited',
  'refused',
  'early-or-spent',
  'early',
  'spent',
  'invalid-grant',
]);

function tokenReport(facts: ReportFacts): TokenReport {
  const { store, stored, history, waiting } = facts;
  if (!stored) return missingReport(facts);
  const { pair, savedAt, age, claim, generation } = stored;
  const leftOf = (seconds: number) => seconds * 1000 - age;
  const refresh = history.find(
    (entry) => RENEWALS.has(entry.outcome) && entry.generation === generation - 1,
  );
  const state = stateOf(stored);
  const ours = waiting.filter(({ isOurs }) => isOurs);
  const blocking = stored.lost
    ? []
    : ours.filter(
        (file) => file.why !== undefined && mayFollow(file, stored, mayHaveSuccessor({ state })),
      );
  const isHeldLong = claim?.live === true && (claim.age > CLAIM_LIFE_MS || claim.isDatedAhead);
  const troubles = troublesOf({
    state: state.kind,
    unsaved: ours.length > blocking.length,
    blocked: facts.unwritable || blocking.length > 0 || isHeldLong,
    age,
    accessLeft: leftOf(pair.expiresIn),
    refreshLeft: leftOf(pair.refreshTokenExpiresIn),
    refreshLife: pair.refreshTokenExpiresIn * 1000,
    notRenewed: !stored.imported && refresh !== undefined && refresh.outcome !== 'rotated',
    imported: stored.imported,
    hasSecondPair: stored.surplus > 0,
    // Only `tokens check` calls the service.
    unauthorized: false,
    waitsForExpiry: waitsForExpiry(stored),
  });
  const since = history.slice(
    0,
    indexOrEnd(history, ({ outcome }) => BEGINNINGS.has(outcome)),
  );
  const isUnderWay = ({ attempt }: HistoryEntry) =>
    claim?.live === true && attempt === claim.attempt;
  // Failures of an import that was withdrawn have another generation.
  const failed = since.filter(
    (entry) => FAILURES.has(entry.outcome) && entry.generation === generation && !isUnderWay(entry),
  );
  const [last] = failed;
  return {
    state: reportStateOf(troubles),
    store,
    layout: facts.layout,
    service: new URL(stored.baseUrl).host,
    name: pair.name,
    generation,
    fingerprint: stored.fingerprint,
    accessTokenSecondsLeft: secondsOf(leftOf(pair.expiresIn)),
    refreshTokenSecondsLeft: stored.lost ? 0 : secondsOf(leftOf(pair.refreshTokenExpiresIn)),
    refusesEarly: stored.refusesEarly,
    lastRotation: stored.imported ? null : iso(savedAt),
    failures: failed.length,
    lastFailure: last ? { at: iso(last.at), outcome: last.outcome } : null,
    exchangeUnderWay: claim?.live === true,
    movedTo: stored.movedTo,
    troubles,
    rescueFiles: ours.map(({ path }) => path),
    history: shown(history),
  };
}

/** A set whose pair waits in a rescue file is not missing: the next start, or `tokens recover`, saves it. */
function missingReport({ store, waiting, history }: ReportFacts): TokenReport {
  const isRescued = waiting.some(({ isOurs }) => isOurs);
  return {
    state: isRescued ? 'attention' : 'missing',
    store,
    layout: null,
    service: null,
    name: null,
    generation: null,
    fingerprint: null,
    accessTokenSecondsLeft: null,
    refreshTokenSecondsLeft: null,
    refusesEarly: false,
    lastRotation: null,
    failures: 0,
    lastFailure: null,
    exchangeUnderWay: false,
    movedTo: null,
    troubles: isRescued ? ['unsaved'] : ['missing'],
    // Those of another store too: TOKEN_STORE may name the wrong one.
    rescueFiles: waiting.map(({ path }) => path),
    history: shown(history),
  };
}

function shown(history: readonly HistoryEntry[]): TokenReport['history'] {
  return history.slice(0, SHOWN).map((entry) => ({ ...entry, at: iso(entry.at) }));
}

function reportStateOf(troubles: readonly Trouble[]): TokenReport['state'] {
  if (troubles.includes('moved')) return 'moved';
  if (troubles.some((trouble) => FATAL.has(trouble))) return 'lost';
  return troubles.length > 0 ? 'attention' : 'healthy';
}

function indexOrEnd<T>(list: readonly T[], test: (element: T) => boolean): number {
  const index = list.findIndex(test);
  return index < 0 ? list.length : index;
}

function secondsOf(ms: number): number {
  return Math.max(0, Math.floor(ms / 1000));
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
