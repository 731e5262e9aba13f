import type { GraphQLSchema } from 'graphql';
import type { SchemaDifference } from './compare-schemas.ts';
import { introspect, type Execute } from './introspect.ts';

/** How the live schema differs from the snapshot, as far as the service lets it be seen. */
export interface LiveComparison {
  /** As introspection reports it; undefined if that is closed. */
  readonly sdl: string | undefined;
  /** Of that schema; without introspection, of the snapshot without what the service no longer accepts. */
  readonly acceptedSdl: () => string;
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
    const { withoutParts } = await import('./closed/without-parts.ts');
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
