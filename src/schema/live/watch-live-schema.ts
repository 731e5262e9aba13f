import type { GraphQLSchema } from 'graphql';
import type { Logger } from 'pino';
import type { Clock } from '../../clock.ts';
import type { SchemaDifference } from './compare-schemas.ts';
import { introspect, type Execute } from './introspect.ts';
import type { ChangeKind } from './kind-of-change.ts';

export type DriftCounts = Readonly<Record<ChangeKind, number>>;

export interface SchemaWatchParts {
  /** From one look to the next, about; undefined: none is taken. */
  everySeconds: number | undefined;
  /** What is served, whatever the looks find. */
  snapshot: GraphQLSchema;
  execute: Execute;
  clock: Clock;
  log: Logger;
  /** Called after each look that came to an end. */
  onLook: (found: DriftCounts) => void;
  random?: () => number;
}

const LONGEST_FIRST_WAIT_S = 60;
const NAMED = 5;

/**
 * Compares the live schema with the snapshot from time to time, and says what is different. It never changes
 * what is served: that is agreed on with callers, and follows the snapshot.
 */
export function watchLiveSchema(parts: SchemaWatchParts): { stop(): Promise<void> } {
  const { everySeconds, snapshot, execute, clock, log, onLook, random = Math.random } = parts;
  if (everySeconds === undefined) return { stop: async () => {} };
  const stopping = new AbortController();
  const { signal } = stopping;
  let compared: { sdl: string; difference: SchemaDifference } | undefined;
  let said = '';
  let isFailing = false;
  const watching = watch(everySeconds).catch((error: unknown) => {
    if (!signal.aborted) log.error({ err: error }, 'the live schema is not looked at any more');
  });
  return {
    stop: async () => {
      stopping.abort();
      await watching;
    },
  };

  /** Many replicas that start together do not look together. */
  async function watch(seconds: number): Promise<void> {
    const first = Math.min(seconds, LONGEST_FIRST_WAIT_S);
    await clock.sleep(first * (500 + 500 * random()), signal);
    for (;;) {
      await look();
      await clock.sleep(seconds * (900 + 200 * random()), signal);
    }
  }

  async function look(): Promise<void> {
    try {
      const live = await introspect(execute, signal);
      if (compared?.sdl !== live.sdl) {
        // Loaded where it is wanted: most gateways do without.
        const { compareSchemas } = await import('./compare-schemas.ts');
        compared = { sdl: live.sdl, difference: await compareSchemas(snapshot, live) };
      }
      say(compared.difference);
    } catch (error) {
      signal.throwIfAborted();
      if (!isFailing) log.warn({ err: error }, 'the live schema could not be looked at');
      isFailing = true;
    }
  }

  function say(difference: SchemaDifference): void {
    if (isFailing) log.info('the live schema can be looked at again');
    isFailing = false;
    const { breaking, dangerous, additive } = difference;
    const counts = {
      breaking: breaking.length,
      dangerous: dangerous.length,
      additive: additive.length,
    };
    onLook(counts);
    const changes = [...breaking, ...dangerous, ...additive].map(({ message }) => message);
    const found = changes.join('\n');
    if (found === said) return;
    said = found;
    const facts = { ...counts, changes: changes.slice(0, NAMED) };
    if (breaking.length > 0) {
      log.error(facts, `the live schema breaks what is served from the snapshot. ${WHAT_TO_DO}`);
    } else if (dangerous.length > 0) {
      log.warn(facts, `the live schema may break what is served from the snapshot. ${WHAT_TO_DO}`);
    } else if (additive.length > 0) {
      log.info(facts, `the live schema has more than the snapshot. ${WHAT_TO_DO}`);
    } else log.info('the live schema is that of the snapshot again');
  }
}

const WHAT_TO_DO =
  'Nothing that is served changes by itself: `schema check` lists all, and `schema pull` writes a new snapshot.';
