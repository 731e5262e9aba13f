import type { GraphQLSchema } from 'graphql';
import type { SchemaDifference } from './compare-schemas.ts';
import { introspect, type Execute } from './introspect.ts';

/** How the live schema differs from the snapshot, as far as the service lets it be seen. */
export interface LiveComparison {
  /** As introspection reports it; undefined if that is closed. */
  readonly sdl: string | undefined;
  readonly difference: SchemaDifference;
  /** What was not compared, in sentences; nothing if introspection is open. */
  readonly unseen: readonly string[];
}

interface LiveCheck {
  readonly snapshot: GraphQLSchema;
  readonly execute: Execute;
  readonly signal: AbortSignal;
  /** Of the check without introspection. */
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
    const { checkByValidation } = await import('./closed/check-by-validation.ts');
    const { breaking, ...seen } = await checkByValidation({ ...check, ...live });
    return { ...seen, sdl: undefined, difference: { breaking, dangerous: [], additive: [] } };
  }
  if (last?.sdl === live.sdl) return last;
  const { compareSchemas } = await import('./compare-schemas.ts');
  const difference = await compareSchemas(check.snapshot, live);
  return { sdl: live.sdl, difference, unseen: [] };
}
