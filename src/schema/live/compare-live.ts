import type { GraphQLSchema } from 'graphql';
import type { Logger } from 'pino';
import type { Clock } from '../../clock.ts';
import type { SchemaDifference, ChangeKind } from './compare-schemas.ts';
import { introspect, type Execute } from './introspect.ts';

/** How the live schema differs from the snapshot. */
interface LiveComparison {
  readonly sdl: string;
  readonly difference: SchemaDifference;
}

interface LiveCheck {
  readonly snapshot: GraphQLSchema;
  readonly execute: Execute;
  readonly signal: AbortSignal;
}

/**
 * Compares the live schema with the snapshot.
 *
 * @param last returned again if the service reports the same schema
 * @throws coded errors
 */
export async function compareLive(
  check: LiveCheck,
  last?: LiveComparison,
): Promise<LiveComparison> {
  const live = await introspect(check.execute, check.signal);
  const { sdl } = live;
  if (last?.sdl === sdl) return last;
  // Imported on first use: most gateways do not need it.
  const { compareSchemas } = await import('./compare-schemas.ts');
  const difference = await compareSchemas(check.snapshot, live);
  return { sdl, difference };
}

type DriftCounts = Readonly<Record<ChangeKind, number>>;

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
      compared = await compareLive({ snapshot, execute, signal }, compared);
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
    const counts = {
      breaking: breaking.length,
      dangerous: dangerous.length,
      additive: additive.length,
    };
    onChecked(counts);
    const changes = [...breaking, ...dangerous, ...additive].map(({ message }) => message);
    const listed = changes.join('\n');
    if (listed === reported) return;
    reported = listed;
    const facts = { ...counts, changes: changes.slice(0, CHANGES_LOGGED) };
    if (breaking.length > 0) {
      log.error(facts, `the live schema breaks what is served from the snapshot. ${ADVICE}`);
    } else if (dangerous.length > 0) {
      log.warn(facts, `the live schema may break what is served from the snapshot. ${ADVICE}`);
    } else if (additive.length > 0) {
      log.info(facts, `the live schema has additions to the snapshot. ${ADVICE}`);
    } else log.info('the live schema equals the snapshot again');
  }
}

const ADVICE =
  'The served schema does not change by itself: `schema check` lists all changes, and `schema pull` writes a new snapshot.';
