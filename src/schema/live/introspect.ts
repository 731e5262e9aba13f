import {
  assertValidSchema,
  buildClientSchema,
  buildSchema,
  getIntrospectionQuery,
  lexicographicSortSchema,
  parse,
  print,
  printSchema,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  type IntrospectionQuery,
} from 'graphql';
import { codedError } from '../../errors.ts';
import { inOneStep, type Pausable } from '../../pausable.ts';
import { readSnapshot } from '../snapshot.ts';

/** Sends a request to the service and returns its answer. */
export type Execute = (
  request: {
    readonly kind: 'query';
    readonly field: string;
    readonly body: string;
    readonly read: (answer: { readonly raw: string }) => Pausable<ExecutionResult>;
  },
  sender: { readonly signal: AbortSignal; readonly priority: 'drain' },
) => Promise<ExecutionResult>;

/** The schema that the service reports at this moment. */
export interface LiveSchema {
  /** Sorted, because some services list their types in a different order each time. */
  readonly sdl: string;
  /** The schema that the gateway would read from a snapshot with this SDL. */
  readonly schema: GraphQLSchema;
  /** The introspection query that was sent: everything that the introspection of this service supports. */
  readonly query: DocumentNode;
}

/** @throws coded errors: of the request, or if the service does not report a usable schema */
export async function introspect(execute: Execute, signal: AbortSignal): Promise<LiveSchema> {
  const request = <Data>(document: DocumentNode) => answerTo<Data>(document, execute, signal);
  const query = introspectionQuery(await request<AboutIntrospection>(ABOUT_INTROSPECTION));
  const answer = await request<IntrospectionQuery>(query);
  try {
    const live = buildClientSchema(answer);
    assertValidSchema(live);
    const sdl = `${printSchema(lexicographicSortSchema(live))}\n`;
    return { sdl, schema: readSnapshot(sdl, 'introspection'), query };
  } catch (cause) {
    throw codedError(
      'UPSTREAM_BAD_RESPONSE',
      `The recruiting service reports a schema that is not valid (${onOneLine((cause as Error).message)}). ` +
        'Report this to its support; until then, maintain the snapshot by hand.',
      { cause },
    );
  }
}

/** Accepts an answer only if it has no errors: parts missing because of an error would count as removed. */
async function answerTo<Data>(
  document: DocumentNode,
  execute: Execute,
  signal: AbortSignal,
): Promise<Data> {
  const request = {
    kind: 'query' as const,
    field: '__schema',
    body: JSON.stringify({ query: print(document) }),
    read: ({ raw }: { readonly raw: string }) => inOneStep(JSON.parse(raw) as ExecutionResult),
  };
  // Callers wait for interactive requests, and this one can wait.
  const { data, errors } = await execute(request, { signal, priority: 'drain' });
  if (data && !errors?.length) return data as Data;
  const message: unknown = errors?.[0]?.message;
  const reason = typeof message === 'string' ? ` (${onOneLine(message)})` : '';
  throw codedError(
    'UPSTREAM_BAD_RESPONSE',
    `The recruiting service does not report its schema${reason}. ` +
      'Ask its support to allow introspection, or maintain the snapshot by hand.',
  );
}

const TYPES = ['__Schema', '__Type', '__Field', '__InputValue', '__Directive'] as const;

/** Asks which fields and arguments the introspection of a service supports. */
const ABOUT_INTROSPECTION = parse(/* GraphQL */ `
  query AboutIntrospection {
    ${TYPES.map((type) => `about${type}: __type(name: "${type}") { ...Known }`).join('\n')}
  }

  fragment Known on __Type {
    fields {
      name
      args {
        name
      }
    }
  }
`);

/** The data of its answer. */
type AboutIntrospection = Partial<Record<string, KnownType | null>>;

interface KnownType {
  readonly fields?: readonly KnownField[] | null;
}

interface KnownField {
  readonly name: string;
  readonly args?: readonly { readonly name: string }[] | null;
}

/**
 * The full introspection query, without the fields that this service does not support: one unknown field, such as
 * `isOneOf`, would make it refuse the whole query.
 */
function introspectionQuery(about: AboutIntrospection): DocumentNode {
  if (!TYPES.every((type) => about[`about${type}`]?.fields)) return parse(getIntrospectionQuery());
  const types = new TypeInfo(buildSchema('type Query { any: Int }'));
  const withoutUnknown = visitWithTypeInfo(types, {
    Field: (node) => {
      const known = about[`about${types.getParentType()?.name}`]?.fields;
      if (!known) return undefined;
      const field = known.find(({ name }) => name === node.name.value);
      if (!field) return null;
      const takes = (name: string) => field.args?.some((argument) => argument.name === name);
      const given = node.arguments?.filter(({ name }) => takes(name.value)) ?? [];
      return { ...node, arguments: given };
    },
  });
  return visit(EVERYTHING, withoutUnknown);
}

const EVERYTHING = parse(
  getIntrospectionQuery({
    descriptions: true,
    schemaDescription: true,
    specifiedByUrl: true,
    directiveIsRepeatable: true,
    inputValueDeprecation: true,
    oneOf: true,
  }),
);

const LONGEST = 300;

/** Makes text of the service safe for logs and terminals: one line, without control characters, shortened. */
export function onOneLine(text: string): string {
  const line = text.replace(/[\p{C}\s]+/gu, ' ').trim();
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
}
