import type { GraphQLSchema } from 'graphql';
import type { Logger } from 'pino';
import type { Clock } from '../../clock.ts';
import type { SchemaDifference, ChangeKind } from './compare-schemas.ts';
import { introspect, type Execute } from './introspect.ts';

/** How the live schema differs from the snapshot, as far as the service reveals it. */
interface LiveComparison {
  /** As introspection reports it; undefined if that is closed. */
  readonly sdl: string | undefined;
  /** The SDL of that schema; without introspection, of the snapshot without what the service no longer accepts. */
  readonly acceptedSdl: () => string;
  readonly difference: SchemaDifference;
  /** What was not compared, in sentences; empty if introspection is open. */
  readonly unseen: readonly string[];
}

interface LiveCheck {
  readonly snapshot: GraphQLSchema;
  readonly execute: Execute;
  readonly signal: AbortSignal;
  /** The largest number of requests of a check without introspection. */
  readonly maxRequests: number;
}

/**
 * Compares the live schema with the snapshot: by introspection, or by validation if introspection is closed.
 *
 * @param last returned again if introspection reports the same schema
 * @throws coded errors
 */
export async function compareLive(
  check: LiveCheck,
  last?: LiveComparison,
): Promise<LiveComparison> {
  const live = await introspect(check.execute, check.signal);
  // Imported on first use: most gateways need neither.
  if ('refused' in live) {
    const { checkByValidation, withoutParts } = await import('./closed.ts');
    const { breaking, gone, unseen } = await checkByValidation({ ...check, ...live });
    const acceptedSdl = () => withoutParts(check.snapshot, gone);
    const difference = { breaking, dangerous: [], additive: [] };
    return { sdl: undefined, acceptedSdl, difference, unseen };
  }
  const { sdl } = live;
  if (last?.sdl === sdl) return last;
  const { compareSchemas } = await import('./compare-schemas.ts');
  const difference = await compareSchemas(check.snapshot, live);
  return { sdl, acceptedSdl: () => sdl, difference, unseen: [] };
}

/** Without introspection, only breaking changes can be counted. */
type DriftCounts = Readonly<Partial<Record<ChangeKind, number>>>;

interface SchemaWatchParts {
  /** The average time between two checks; undefined: the live schema is never checked. */
  everySeconds: number | undefined;
  /** The served schema. The checks do not change it. */
  snapshot: GraphQLSchema;
  execute: Execute;
  clock: Clock;
  log: Logger;
  /** Called after each check that was completed. */
  onChecked: (counts: DriftCounts) => void;
  random?: () => number;
}

const LONGEST_FIRST_WAIT_S = 60;

const CHANGES_LOGGED = 5;

/** The largest number of requests of one check without introspection. Each has some hundred parts of the snapshot. */
const MAX_REQUESTS = 50;

/**
 * Compares the live schema with the snapshot from time to time, and logs the changes. It never changes the served
 * schema, on which callers rely: that follows the snapshot.
 */
export function watchLiveSchema(parts: SchemaWatchParts): { stop(): Promise<void> } {
  const { everySeconds, snapshot, execute, clock, log, onChecked, random = Math.random } = parts;
  if (everySeconds === undefined) return { stop: async () => {} };
  const stopping = new AbortController();
  const { signal } = stopping;
  let compared: LiveComparison | undefined;
  let unseen = '';
  let reported = '';
  let isFailing = false;
  const watching = watch(everySeconds).catch((error: unknown) => {
    if (!signal.aborted) log.error({ err: error }, 'the live schema is no longer checked');
  });
  return {
    stop: async () => {
      stopping.abort();
      await watching;
    },
  };

  /** Spreads the checks, so that replicas that start together do not check together. */
  async function watch(seconds: number): Promise<void> {
    const first = Math.min(seconds, LONGEST_FIRST_WAIT_S);
    await clock.sleep(first * (500 + 500 * random()), signal);
    for (;;) {
      await check();
      await clock.sleep(seconds * (900 + 200 * random()), signal);
    }
  }

  async function check(): Promise<void> {
    try {
      const inquiry = { snapshot, execute, signal, maxRequests: MAX_REQUESTS };
      compared = await compareLive(inquiry, compared);
      report(compared);
    } catch (error) {
      signal.throwIfAborted();
      if (!isFailing) log.warn({ err: error }, 'the live schema could not be checked');
      isFailing = true;
    }
  }

  function report(comparison: LiveComparison): void {
    if (isFailing) log.info('the live schema can be checked again');
    isFailing = false;
    const { breaking, dangerous, additive } = comparison.difference;
    const isOpen = comparison.sdl !== undefined;
    const counts = {
      breaking: breaking.length,
      ...(isOpen ? { dangerous: dangerous.length, additive: additive.length } : {}),
    };
    onChecked(counts);
    if (comparison.unseen.join('\n') !== unseen) {
      unseen = comparison.unseen.join('\n');
      if (!isOpen) log.info({ unseen: comparison.unseen }, 'the live schema is checked in part');
    }
    const changes = [...breaking, ...dangerous, ...additive].map(({ message }) => message);
    const listed = changes.join('\n');
    if (listed === reported) return;
    reported = listed;
    const facts = { ...counts, changes: changes.slice(0, CHANGES_LOGGED) };
    const advice = `The served schema does not change by itself: ${isOpen ? IF_OPEN : IF_CLOSED}`;
    if (breaking.length > 0) {
      log.error(facts, `the live schema breaks what is served from the snapshot. ${advice}`);
    } else if (dangerous.length > 0) {
      log.warn(facts, `the live schema may break what is served from the snapshot. ${advice}`);
    } else if (additive.length > 0) {
      log.info(facts, `the live schema has additions to the snapshot. ${advice}`);
    } else if (isOpen) log.info('the live schema equals the snapshot again');
    else log.info('the live schema accepts everything again that was checked');
  }
}

const IF_OPEN = '`schema check` lists all changes, and `schema pull` writes a new snapshot.';

const IF_CLOSED =
  '`schema check` lists all changes. Correct the snapshot by hand, because the service does not report its schema.';
