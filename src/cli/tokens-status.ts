import { onOneLine } from '../errors.ts';
import { iso, lineOn, troublesOf, underWay, type Trouble } from '../tokens/health.ts';
import { proxyAgent, tokenService, type Verdict } from '../tokens/service.ts';
import { endsAt, fingerprintOf, isLive, type State } from '../tokens/state.ts';
import { STEPS } from '../setup/custody.ts';
import { duration, type Terminal } from './terminal.ts';
import { present, readTokens } from './tokens-store.ts';

/** Prints the state of the tokens. @returns the exit code: 0 healthy, 1 needs attention, 2 lost, moved or missing */
export async function tokensStatus(_options: object, terminal: Terminal) {
  const { state, now, store, waiting: files } = await readTokens(terminal);
  // Files with a pair that the store lacks, or that cannot be read.
  const waiting = files.filter((file) => {
    if ('why' in file || !state) return true;
    const { id, generation } = file.received;
    return id === state.id && generation > state.generation;
  });
  const isUnsaved = waiting.length > 0;
  // The next start, or `tokens recover`, saves the pair that waits.
  const troubles: Trouble[] =
    !state && isUnsaved ? ['unsaved'] : troublesOf(state, { now, isUnsaved });
  const [level, exitCode] = levelOf(state, troubles);
  const facts: Fact[] = [
    ['State', level],
    ['Store', store.description],
    ...(state ? factsOf(state, now) : []),
    ...waiting.map((file): Fact => [
      'Emergency file',
      'why' in file ? `${file.path}: ${file.why}` : file.path,
    ]),
  ];
  const lines = facts.flatMap(([name, value]) => (value ? [`  ${name.padEnd(15)} ${value}`] : []));
  const advice = troubles.map((trouble) => `\n  ${trouble}: ${lineOn(trouble, state, STEPS)}`);
  const trail = state ? [`\n  ${NOT_ASKED}\n\n  Recent events`, ...eventsOf(state)] : [];
  terminal.stdout.write([...lines, ...advice, ...trail, ''].join('\n'));
  return exitCode;
}

function levelOf(state: State | null, troubles: readonly Trouble[]) {
  if (state?.movedTo != null) return ['MOVED to another store', 2] as const;
  if (troubles.includes('missing')) return ['MISSING', 2] as const;
  if (troubles.includes('lost')) return ['LOST', 2] as const;
  const isRefused = state !== null && state.refusals > 0;
  return troubles.length > 0 || isRefused
    ? (['needs attention', 1] as const)
    : (['healthy', 0] as const);
}

/** A fact that does not apply has no value. */
type Fact = readonly [name: string, value: string | false | null];

/** Contains no secrets. */
function factsOf(state: State, now: number): readonly Fact[] {
  const { claim, generation, imported, lost, pair, refusals, refusesEarly, savedAt } = state;
  return [
    ['Service', new URL(state.service).host],
    ['Generation', `${generation} (refresh token ${fingerprintOf(pair)})`],
    ['Access token', left(state.expiresAt - now)],
    // A refresh token that the service refuses has no life left.
    ['Refresh token', left(lost ? 0 : endsAt(state) - now)],
    ['Last refresh', imported ? 'never' : iso(savedAt)],
    [
      'Refusals',
      refusals > 0 &&
        `${refusals}: too early, or spent. It is sent once more when the access token has ended`,
    ],
    ['Too early', refusesEarly && 'any refresh before the access token has expired'],
    ['Under way', isLive(claim, now) && underWay(claim!)],
  ];
}

/** The audit trail, newest first. */
function eventsOf({ events }: State): string[] {
  return events
    .slice(0, 5)
    .map(
      ({ at, generation, what, by }) => `  ${iso(at)}  generation ${generation}: ${what}, by ${by}`,
    );
}

function left(ms: number): string {
  return ms > 0 ? `${duration(ms / 1000)} left` : 'has ended';
}

const NOT_ASKED =
  'This is what the store says. `tokens check` shows whether the service accepts the access token. Only the log and the ' +
  'metrics of a gateway show a pair that it could neither save nor write to an emergency file (`unsaved`).';

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
