import {
  assertValidSchema,
  buildClientSchema,
  lexicographicSortSchema,
  print,
  printSchema,
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  type IntrospectionQuery,
} from 'graphql';
import { codedError } from '../../errors.ts';
import { readSnapshot } from '../snapshot.ts';
import {
  ABOUT_INTROSPECTION,
  introspectionQuery,
  type AboutIntrospection,
} from './introspection-query.ts';
import { onOneLine } from './on-one-line.ts';

/** Sends a request to the service, and reads its answer as it says. */
export type Execute = (request: {
  readonly kind: 'query';
  readonly field: string;
  readonly body: string;
  readonly scan: () => undefined;
  readonly read: (answer: { readonly raw: string }) => ExecutionResult;
  readonly signal: AbortSignal;
  readonly priority: 'drain';
}) => Promise<ExecutionResult>;

/** What the service tells of its schema at this moment. */
export interface LiveSchema {
  /** Sorted, since some services list their types in another order each time. */
  readonly sdl: string;
  /** As the gateway would read it of a snapshot. */
  readonly schema: GraphQLSchema;
  /** What was asked for: all that the introspection of this service knows. */
  readonly query: DocumentNode;
}

/** @throws coded errors: of the way to the service, and when it does not show a schema that can be used */
export async function introspect(execute: Execute, signal: AbortSignal): Promise<LiveSchema> {
  const ask = <Data>(document: DocumentNode) => answerTo<Data>(document, execute, signal);
  const query = introspectionQuery(await ask<AboutIntrospection>(ABOUT_INTROSPECTION));
  const shown = await ask<IntrospectionQuery>(query);
  try {
    const live = buildClientSchema(shown);
    assertValidSchema(live);
    const sdl = `${printSchema(lexicographicSortSchema(live))}\n`;
    return { sdl, schema: readSnapshot(sdl, 'introspection'), query };
  } catch (cause) {
    throw codedError(
      'UPSTREAM_BAD_RESPONSE',
      `The recruiting service shows a schema that is not valid (${onOneLine((cause as Error).message)}). ` +
        'Report it to the service; the snapshot can be kept by hand meanwhile.',
      { cause },
    );
  }
}

/** Whole or not at all: what came along with errors may lack parts, which would then count as removed. */
async function answerTo<Data>(
  document: DocumentNode,
  execute: Execute,
  signal: AbortSignal,
): Promise<Data> {
  const { data, errors } = await execute({
    kind: 'query',
    field: '__schema',
    body: JSON.stringify({ query: print(document) }),
    scan: () => undefined,
    read: ({ raw }) => JSON.parse(raw) as ExecutionResult,
    signal,
    // Behind everybody who waits for an answer.
    priority: 'drain',
  });
  if (data && !errors?.length) return data as Data;
  const message: unknown = errors?.[0]?.message;
  const said = typeof message === 'string' ? ` (${onOneLine(message)})` : '';
  throw codedError(
    'UPSTREAM_BAD_RESPONSE',
    `The recruiting service does not show its schema${said}. ` +
      'Have its support allow introspection, or keep the snapshot by hand.',
  );
}
