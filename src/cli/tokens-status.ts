import { existsSync } from 'node:fs';
import { readNamedSettings, type Config } from '../config.ts';
import type { Emergency, Unsaved } from '../tokens/emergency.ts';
import { ADVICE, adviceOn, FATAL, troublesOf, type Trouble } from '../tokens/health.ts';
import { foreignStore } from '../tokens/holder.ts';
import { proxyAgent, tokenService, type Verdict } from '../tokens/service.ts';
import { endsAt, fingerprintOf, isLive, isUncertain, type State } from '../tokens/state.ts';
import type { Reading, TokenStore } from '../tokens/store.ts';
import { emergencyFor, openTokenStore, storeProblem } from '../setup/custody.ts';
import { CommandError, duration, printable, type Terminal } from './terminal.ts';

/** A token store as it is. A gateway may change it at any moment. */
export interface ReadTokens extends Reading {
  readonly config: Config;
  readonly store: TokenStore;
  readonly emergency: Emergency;
}

/** Reads the token store for `work`. Neither creates nor changes anything. */
export async function withReadTokens<T>(
  terminal: Terminal,
  work: (tokens: ReadTokens) => Promise<T>,
): Promise<T> {
  const config = readTokenConfig(terminal, { refusesUnknown: false });
  const { recruitingUrl } = config;
  const store = openTokenStore(config.tokenStore, config, { readOnly: true });
  try {
    const reading = await store.read().catch((error: unknown) => {
      throw storeProblem(error, store);
    });
    const { state } = reading;
    if (state && recruitingUrl !== undefined && state.service !== recruitingUrl) {
      throw foreignStore(store, state, recruitingUrl);
    }
    return await work({ ...reading, config, store, emergency: emergencyFor(config) });
  } finally {
    await store.close();
  }
}

/** Reads only the settings for tokens, because these commands need none for callers. */
export function readTokenConfig(
  { env, readFile }: Terminal,
  checks: { readonly refusesUnknown: boolean },
): Config {
  const names = [
    'RECRUITING_URL',
    'RECRUITING_AGENT',
    'TOKEN_LINK_ORIGIN',
    'TOKEN_STORE',
    'TOKEN_STORE_FILE',
    'TOKEN_STORE_KEY',
    'TOKEN_STORE_KEY_FILE',
    'TOKEN_RESCUE_DIR',
    'NODE_ENV',
    'LOG_LEVEL',
  ] as const;
  return readNamedSettings(env, readFile, names, checks);
}

/** Returns the error for a store without tokens. */
export function noTokens({ config, store, emergency }: Omit<ReadTokens, keyof Reading>) {
  const { tokenStore: address } = config;
  const isThere = address.kind === 'postgres' || existsSync(address.path);
  const [waiting] = emergency.read();
  return new CommandError(
    `There are no tokens in the token store (${store.description}${isThere ? '' : ', which does not exist'}). ` +
      (waiting
        ? `A pair waits in an emergency file (${waiting.path}): do not remove it. Check that TOKEN_STORE, TOKEN_STORE_KEY and RECRUITING_URL are those of the gateway, and run \`tokens recover\`, which saves it.`
        : ADVICE.missing),
  );
}

/** Prints the state of the tokens. @returns the exit code: 0 healthy, 1 needs attention, 2 lost, moved or missing */
export async function tokensStatus({ json }: { json: boolean }, terminal: Terminal) {
  return withReadTokens(terminal, async (tokens) => {
    const report = reportOn(tokens);
    terminal.stdout.write(json ? `${JSON.stringify(report)}\n` : textOf(report, tokens.state));
    if (report.troubles.some((trouble) => FATAL.has(trouble))) return 2;
    return report.troubles.length > 0 ? 1 : 0;
  });
}

/** What `tokens status` reports. Contains no secrets. The facts about tokens are absent if the store has none. */
interface TokenReport extends Partial<TokenFacts> {
  readonly state: 'healthy' | 'attention' | 'lost' | 'moved' | 'missing';
  readonly store: string;
  readonly troubles: readonly Trouble[];
  /** Files with a pair that the store lacks, or that cannot be read. */
  readonly emergencyFiles: readonly string[];
}

type TokenFacts = ReturnType<typeof factsOf>;

function reportOn({ state, now, config, store, emergency }: ReadTokens): TokenReport {
  const waiting = emergency.read().filter((file) => mayBeNewer(file, state, config));
  const facts = { now, isUnsaved: waiting.length > 0, isUnauthorized: false };
  // The next start, or `tokens recover`, saves the pair that waits.
  const troubles: Trouble[] = !state && facts.isUnsaved ? ['unsaved'] : troublesOf(state, facts);
  return {
    state: stateOf(troubles, state),
    store: store.description,
    troubles,
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
    /** Why the outcome of the last exchange is not known. */
    unclear: isUncertain(state, now) ? `by ${claim!.by}: ${claim!.unclear ?? CUT_OFF}` : null,
    /** The audit trail, newest first. */
    events: state.events.slice(0, SHOWN_EVENTS).map((event) => ({ ...event, at: iso(event.at) })),
  };
}

const SHOWN_EVENTS = 20;

/** Why a claim can be left without an answer. */
export const CUT_OFF = 'its process ended before the answer was saved';

/** Whether a file may hold a pair that the store lacks. */
function mayBeNewer(file: Unsaved, state: State | null, { recruitingUrl }: Config): boolean {
  if ('why' in file) return true;
  const { id, service, generation } = file.received;
  if (!state) return recruitingUrl === undefined || service === recruitingUrl;
  return id === state.id && generation > state.generation;
}

function stateOf(troubles: readonly Trouble[], state: State | null): TokenReport['state'] {
  if (state?.movedTo != null) return 'moved';
  const fatal = troubles.find((trouble) => FATAL.has(trouble));
  if (fatal) return fatal === 'missing' ? 'missing' : 'lost';
  return troubles.length > 0 ? 'attention' : 'healthy';
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

const STATES: Record<TokenReport['state'], string> = {
  healthy: 'healthy',
  attention: 'needs attention',
  lost: 'LOST',
  moved: 'MOVED to another store',
  missing: 'MISSING',
};

function textOf(report: TokenReport, state: State | null): string {
  const facts: [string, string | number | boolean | null | undefined][] = [
    ['State', STATES[report.state]],
    ['Store', report.store],
    ['Service', report.service],
    ['Token set', report.name && printable(report.name)],
    ['Moved to', report.movedTo],
    [
      'Generation',
      report.generation && `${report.generation} (refresh token ${report.fingerprint})`,
    ],
    ['Access token', left(report.accessTokenSecondsLeft)],
    ['Refresh token', left(report.refreshTokenSecondsLeft)],
    ['Last refresh', report.lastRefresh === null ? 'never' : report.lastRefresh],
    ['Refreshes', report.refusesEarly && 'after the expiry: the service refuses earlier ones'],
    ['Unclear', report.unclear && `the last refresh, ${report.unclear}`],
    ['Refused', report.refusals && `${times(report.refusals)}: too early, or spent`],
    ['Now', report.exchangeUnderWay && 'a process is refreshing it'],
    ...report.emergencyFiles.map((path): [string, string] => ['Emergency file', path]),
  ];
  const lines = facts.flatMap(([name, value]) => (value ? [`  ${name.padEnd(15)} ${value}`] : []));
  const advice = report.troubles.map((trouble) => `\n  ${trouble}: ${adviceOn(trouble, state)}`);
  const events = report.events?.slice(0, PRINTED_EVENTS).map(lineOf);
  return [
    ...lines,
    ...advice,
    ...(events ? [`\n  ${NOT_ASKED}\n\n  Recent events`, ...events] : []),
    '',
  ].join('\n');
}

const PRINTED_EVENTS = 5;

const NOT_ASKED =
  'The service was not asked: `tokens check` shows whether it accepts the access token.';

function left(seconds: number | undefined): string | undefined {
  if (seconds === undefined) return undefined;
  return seconds > 0 ? `${duration(seconds)} left` : 'has ended';
}

/** How often. */
export function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

function lineOf({ at, generation, what, by }: TokenFacts['events'][number]): string {
  return `  ${at}  generation ${generation}: ${what}, by ${by}`;
}

/**
 * Asks the service whether it accepts the current access token.
 *
 * @returns the exit code: 0 if it does, 1 if not
 */
export async function tokensCheck({ json }: { json: boolean }, terminal: Terminal) {
  return withReadTokens(terminal, async (tokens) => {
    const { state, config } = tokens;
    if (!state) throw noTokens(tokens);
    const { service: baseUrl, pair, generation } = state;
    const { check } = tokenService({
      baseUrl,
      agent: config.agent,
      http: proxyAgent(terminal.env),
    });
    const verdict = await check(pair.accessToken);
    const service = new URL(baseUrl).host;
    const report = { service, generation, ...verdict };
    terminal.stdout.write(`${json ? JSON.stringify(report) : sentenceOn(verdict, service)}\n`);
    return verdict.kind === 'works' ? 0 : 1;
  });
}

function sentenceOn(verdict: Verdict, service: string): string {
  if (verdict.kind === 'works') return `${service} accepts the access token.`;
  if (verdict.kind === 'unclear') {
    return (
      `${service} gave no clear answer (${verdict.why}), which says nothing about the tokens. Check RECRUITING_URL, the network ` +
      'and HTTPS_PROXY, and try again.'
    );
  }
  return verdict.detail === 'token_expired'
    ? `${service} reports that the access token has expired. A running gateway refreshes it by itself; otherwise run \`tokens refresh\`.`
    : `${service} refuses the access token (${printable(verdict.detail)}). ${ADVICE.unauthorized}`;
}
