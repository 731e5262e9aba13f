import {
  assertValidSchema,
  buildClientSchema,
  getIntrospectionQuery,
  lexicographicSortSchema,
  parse,
  print,
  printSchema,
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  type IntrospectionQuery,
} from 'graphql';
import { codedError } from '../../errors.ts';
import { readResult } from '../../upstream/executor.ts';
import type { SendToService } from '../../upstream/upstream.ts';
import { readSnapshot } from '../snapshot.ts';

/** The schema that the service reports at this moment. */
export interface LiveSchema {
  /** Sorted, because some services list their types in a different order each time. */
  readonly sdl: string;
  /** The schema that the gateway would read from a snapshot with this SDL. */
  readonly schema: GraphQLSchema;
  /** The introspection query that was answered: everything that the introspection of this service supports. */
  readonly query: DocumentNode;
}

/**
 * Requests the schema in one operation with one `__schema` and without `__type`: services count these, and refuse a
 * second one. First it requests everything that current services report; then it leaves out what the errors name as
 * unknown; last, it requests only what every service reports.
 *
 * @throws coded errors: of the request, or if the service refuses introspection or reports a schema that is not usable
 */
export async function introspect(send: SendToService, signal: AbortSignal): Promise<LiveSchema> {
  let first: string | undefined;
  for (let parts: Parts | undefined = EVERYTHING; parts;) {
    const query = parse(getIntrospectionQuery({ ...parts, typeDepth: DEEPEST_TYPE }));
    const answer = await answerTo(query, send, signal);
    const messages = refusalOf(answer);
    if (!messages) return liveSchema(answer.data as unknown as IntrospectionQuery, query);
    first ??= messages[0] ?? '';
    parts = withoutUnknown(parts, messages);
  }
  const reason = first === undefined || first === '' ? '' : ` (${onOneLine(first)})`;
  throw codedError(
    'UPSTREAM_BAD_RESPONSE',
    `The recruiting service refuses introspection${reason}. ${UNTIL_THEN}`,
  );
}

const UNTIL_THEN = 'Report this to its support; until then, maintain the snapshot by hand.';

function liveSchema(answer: IntrospectionQuery, query: DocumentNode): LiveSchema {
  try {
    const live = buildClientSchema(answer);
    assertValidSchema(live);
    const sdl = `${printSchema(lexicographicSortSchema(live))}\n`;
    return { sdl, schema: readSnapshot(sdl, 'introspection'), query };
  } catch (cause) {
    throw codedError(
      'UPSTREAM_BAD_RESPONSE',
      `The recruiting service reports a schema that is not valid (${onOneLine((cause as Error).message)}). ${UNTIL_THEN}`,
      { cause },
    );
  }
}

/** Sends a document without variables, and returns the answer even if it has errors. */
async function answerTo(
  document: DocumentNode,
  send: SendToService,
  signal: AbortSignal,
): Promise<ExecutionResult> {
  const body = JSON.stringify({ query: print(document) });
  // No caller waits for this request, so requests of callers go first.
  const sender = { signal, priority: 'drain', caller: 'schema', cause: undefined } as const;
  return readResult(await send({ kind: 'query', body }, sender));
}

/** The messages of an answer with errors: parts missing because of an error would count as removed. */
function refusalOf({ data, errors }: ExecutionResult): string[] | undefined {
  if (data && !errors?.length) return undefined;
  return (errors ?? [])
    .map((error) => (error as { message?: unknown } | null)?.message)
    .filter((message) => typeof message === 'string');
}

/** `[[[T!]!]!]!`: some services refuse the ten levels that graphql-js requests today. */
const DEEPEST_TYPE = 7;

/** What was added to introspection since its first version. */
interface Parts {
  readonly schemaDescription: boolean;
  readonly specifiedByUrl: boolean;
  readonly directiveIsRepeatable: boolean;
  readonly inputValueDeprecation: boolean;
  readonly oneOf: boolean;
}

const EVERYTHING: Parts = {
  schemaDescription: true,
  specifiedByUrl: true,
  directiveIsRepeatable: true,
  inputValueDeprecation: true,
  oneOf: true,
};

/** How errors name what a service does not know. */
const NAMES: Record<keyof Parts, RegExp> = {
  schemaDescription: /\b__Schema\b/,
  specifiedByUrl: /\bspecifiedByURL\b/,
  directiveIsRepeatable: /\bisRepeatable\b/,
  inputValueDeprecation: /\bincludeDeprecated\b|\b__InputValue\b/,
  oneOf: /\bisOneOf\b/,
};

/** Removes the parts that the errors name, or all if they name none. Undefined if nothing was left to remove. */
function withoutUnknown(parts: Parts, messages: readonly string[]): Parts | undefined {
  const requested = (Object.keys(NAMES) as (keyof Parts)[]).filter((part) => parts[part]);
  if (requested.length === 0) return undefined;
  const isNamed = (part: keyof Parts) => messages.some((message) => NAMES[part].test(message));
  const unknown = requested.some(isNamed) ? requested.filter(isNamed) : requested;
  return { ...parts, ...Object.fromEntries(unknown.map((part) => [part, false])) };
}

const LONGEST = 300;

/** Makes text of the service safe for logs and terminals: one line, without control characters, shortened. */
export function onOneLine(text: string): string {
  const line = text.replace(/[\p{C}\s]+/gu, ' ').trim();
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
}
