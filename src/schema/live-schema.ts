import { getIntrospectionQuery, type IntrospectionOptions } from 'graphql';
import { onOneLine } from '../errors.ts';
import { readResult } from '../upstream/executor.ts';
import type { SendToService } from '../upstream/upstream.ts';
import { readIntrospection } from './introspection.ts';
import { snapshotOf, type Snapshot } from './snapshot.ts';

/** What current services report, and what all of them do. `[[[T!]!]!]!`: some refuse deeper types. */
const QUERIES: readonly IntrospectionOptions[] = [
  {
    schemaDescription: true,
    specifiedByUrl: true,
    directiveIsRepeatable: true,
    inputValueDeprecation: true,
    oneOf: true,
    typeDepth: 7,
  },
  { typeDepth: 7 },
];

/**
 * Requests the schema in one operation with one `__schema` and without `__type`: services count these, and refuse a
 * second one. If that is refused, requests what was in the first version of introspection.
 *
 * @throws Error: of the request, or if the service refuses introspection or reports a schema that is not usable
 */
export async function introspect(send: SendToService, signal: AbortSignal): Promise<Snapshot> {
  let refusal: string | undefined;
  for (const options of QUERIES) {
    const body = JSON.stringify({ query: getIntrospectionQuery(options) });
    // No caller waits for this request, so requests of callers go first.
    const sender = { signal, priority: 'drain', caller: 'schema', cause: undefined } as const;
    const { data, errors } = readResult(await send({ kind: 'query', body }, sender));
    // Parts that are missing because of an error would count as removed.
    if (data && !errors?.length) return liveSchema(data);
    refusal ??= onOneLine(errors?.[0]?.message ?? '');
  }
  throw new Error(
    `The recruiting service refuses introspection${refusal ? ` (${refusal})` : ''}. ${UNTIL_THEN}`,
  );
}

const UNTIL_THEN = 'Report this to its support; until then, maintain the snapshot by hand.';

function liveSchema(answer: unknown): Snapshot {
  try {
    const live = snapshotOf(readIntrospection(answer));
    return { ...live, warnings: live.warnings.map(onOneLine) };
  } catch (cause) {
    const why = onOneLine((cause as Error).message);
    throw new Error(
      `The recruiting service reports a schema that is not valid (${why}). ${UNTIL_THEN}`,
      { cause },
    );
  }
}
