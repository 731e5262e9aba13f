import { onOneLine } from '../errors.ts';
import { iso, lineOn, troublesOf, underWay, type Trouble } from '../tokens/health.ts';
import { proxyAgent, tokenService, type Verdict } from '../tokens/service.ts';
import { endsAt, fingerprintOf, isLive, type State } from '../tokens/state.ts';
import { STEPS } from '../setup/custody.ts';
import { duration, type Terminal } from './terminal.ts';
import { present, readTokens, type ReadTokens } from './tokens-store.ts';

/** Prints the state of the tokens. @returns the exit code: 0 healthy, 1 needs attention, 2 lost, moved or missing */
export async function tokensStatus({ json }: { json: boolean }, terminal: Terminal) {
  const tokens = await readTokens(terminal);
  const report = reportOn(tokens);
  terminal.stdout.write(json ? `${JSON.stringify(report)}\n` : textOf(report, tokens));
  return STATES[report.state].exitCode;
}

const STATES = {
  healthy: { text: 'healthy', exitCode: 0 },
  attention: { text: 'needs attention', exitCode: 1 },
  lost: { text: 'LOST', exitCode: 2 },
  moved: { text: 'MOVED to another store', exitCode: 2 },
  missing: { text: 'MISSING', exitCode: 2 },
} as const;

type TokenReport = ReturnType<typeof reportOn>;

/** What `tokens status` reports. Contains no secrets. The facts about tokens are absent if the store has none. */
function reportOn({ state, now, store, waiting: files }: ReadTokens) {
  const waiting = files.filter((file) => {
    if ('why' in file || !state) return true;
    const { id, generation } = file.received;
    return id === state.id && generation > state.generation;
  });
  const facts = { now, isUnsaved: waiting.length > 0 };
  // The next start, or `tokens recover`, saves the pair that waits.
  const troubles: Trouble[] = !state && facts.isUnsaved ? ['unsaved'] : troublesOf(state, facts);
  let level: keyof typeof STATES = troubles.length > 0 ? 'attention' : 'healthy';
  for (const fatal of ['lost', 'missing'] as const) if (troubles.includes(fatal)) level = fatal;
  if (state?.movedTo != null) level = 'moved';
  return {
    state: level,
    store: store.description,
    troubles,
    /** Files with a pair that the store lacks, or that cannot be read. */
    emergencyFiles: waiting.map(({ path }) => path),
    ...(state && factsOf(state, now)),
  };
}

function factsOf(state: State, now: number) {
  const { claim, generation, imported, movedTo, pair, refusals, refusesEarly, savedAt } = state;
  const secondsTo = (end: number) => Math.max(0, Math.floor((end - now) / 1000));
  return {
    service: new URL(state.service).host,
    name: pair.name,
    movedTo,
    generation,
    /** Of the refresh token. */
    fingerprint: fingerprintOf(pair),
    accessTokenSecondsLeft: secondsTo(state.expiresAt),
    /** A refresh token that the service refuses has no life left. */
    refreshTokenSecondsLeft: state.lost ? 0 : secondsTo(endsAt(state)),
    /** ISO 8601; null if this set was not refreshed since its import. */
    lastRefresh: imported ? null : iso(savedAt),
    /** Whether the service exchanges no refresh token before its access token has expired, as far as is known. */
    refusesEarly,
    /** How often the service refused this refresh token. */
    refusals,
    exchangeUnderWay: isLive(claim, now),
    /** The audit trail, newest first. */
    events: state.events.slice(0, 20).map((event) => ({ ...event, at: iso(event.at) })),
  };
}

function textOf(report: TokenReport, { state }: ReadTokens): string {
  const { generation, refusals } = report;
  const facts: [string, string | number | boolean | null | undefined][] = [
    ['State', STATES[report.state].text],
    ['Store', report.store],
    ['Service', report.service],
    ['Token set', report.name && onOneLine(report.name)],
    ['Generation', generation && `${generation} (refresh token ${report.fingerprint})`],
    ['Access token', left(report.accessTokenSecondsLeft)],
    ['Refresh token', left(report.refreshTokenSecondsLeft)],
    ['Last refresh', report.lastRefresh === null ? 'never' : report.lastRefresh],
    ['Refused', refusals && `${refusals} ×: too early, or spent`],
    ['Under way', report.exchangeUnderWay && underWay(state!.claim!)],
    ...report.emergencyFiles.map((path): [string, string] => ['Emergency file', path]),
  ];
  const lines = facts.flatMap(([name, value]) => (value ? [`  ${name.padEnd(15)} ${value}`] : []));
  const advice = report.troubles.map(
    (trouble) => `\n  ${trouble}: ${lineOn(trouble, state, STEPS)}`,
  );
  const events = report.events
    ?.slice(0, 5)
    .map(({ at, generation: of, what, by }) => `  ${at}  generation ${of}: ${what}, by ${by}`);
  const trail = events ? [`\n  ${NOT_ASKED}\n\n  Recent events`, ...events] : [];
  return [...lines, ...advice, ...trail, ''].join('\n');
}

const NOT_ASKED =
  'This is what the store says. `tokens check` shows whether the service accepts the access token. Only the log and the ' +
  'metrics of a gateway show a pair that it could neither save nor write to an emergency file (`unsaved`).';

function left(seconds: number | undefined): string | undefined {
  if (seconds === undefined) return undefined;
  return seconds > 0 ? `${duration(seconds)} left` : 'has ended';
}

/** Sends the service a query with the current access token. @returns the exit code: 0 if it is answered, 1 if not */
export async function tokensCheck(_options: object, terminal: Terminal) {
  const tokens = await readTokens(terminal);
  const state = present(tokens);
  const { service: baseUrl, pair } = state;
  const { agent } = tokens.config;
  const { check } = tokenService({ baseUrl, agent, http: proxyAgent(terminal.env) });
  const verdict = await check(pair.accessToken, true);
  terminal.stdout.write(`${new URL(baseUrl).host} ${verdictOn(verdict, state)}\n`);
  return verdict.kind === 'works' ? 0 : 1;
}

function verdictOn(verdict: Verdict, state: State): string {
  if (verdict.kind === 'works') return 'accepts the access token, and answers a query.';
  if (verdict.kind === 'unclear') {
    return (
      `gave no clear answer (${verdict.why}), which says nothing about the tokens. Check RECRUITING_URL, the network and ` +
      'HTTPS_PROXY, and try again.'
    );
  }
  return verdict.detail === 'token_expired'
    ? 'reports that the access token has expired. A running gateway refreshes it by itself; otherwise run `tokens refresh`.'
    : `refuses a query (${onOneLine(verdict.detail)}). ${lineOn('unauthorized', state, STEPS)}`;
}
