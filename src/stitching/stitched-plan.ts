import {
  execute,
  GraphQLError,
  type DirectiveNode,
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { codedError } from '../errors.ts';
import { STEP } from '../pausable.ts';
import type { Call } from '../plans/call.ts';
import type { OperationPlan } from '../plans/planner.ts';
import { incrementalCheck, serviceDirective } from '../schema/incremental-directives.ts';
import { fragmentsOf, onlyOperation, walkFields } from '../selections.ts';
import { delegateDirectives, MAX_RECORDS, unplacedErrors, exactly } from './delegations.ts';
import {
  callerKey,
  keysOf,
  withPrivateKeys,
  type Key,
  type Keys,
  selectsField,
} from './private-keys.ts';
import type { ServedWithAdditions } from './with-additions.ts';

/**
 * Plans an operation that selects something added: graphql-js executes it over the stitched schema, and delegates to
 * the plans of the served schema. It is always answered whole.
 *
 * @param admit returns the context with which a call delegates
 * @param grown called with the bytes of memory that the plan takes
 */
export function stitchedPlan(
  { schema, snapshot, fields }: Pick<ServedWithAdditions, 'schema' | 'snapshot' | 'fields'>,
  admit: (call: Call) => object,
  planned: { readonly document: DocumentNode; readonly operation: OperationDefinitionNode },
  grown: (bytes: number) => void,
): OperationPlan {
  const { operation } = planned;
  const ofService = ({ directives = [] }: Directed) =>
    directives.filter((directive) => snapshot.getDirective(directive.name.value));
  const directives = ofService(operation);
  const { document: selected } = onlyOperation(planned.document, operation);
  if (selectsIntrospection(schema, selected)) throw introspectionBeside();
  checkDirectives(selected, operation, ofService);
  const document = withPrivateKeys(schema, selected, fields);
  const keys = keysOf(schema, document);
  const checkIncremental = incrementalCheck(planned.document);
  const variables = (operation.variableDefinitions ?? []).map(
    ({ variable }) => variable.name.value,
  );
  grown(BYTES_OF_PLAN + BYTES_OF_CHARACTER * (operation.loc?.source.body.length ?? 0));
  return {
    answer: async (call) => {
      checkIncremental(call.variables.values);
      call.limitDrains(MAX_RECORDS);
      const context = admit(call);
      const values = valuesOf(call, variables);
      if (directives.length > 0)
        delegateDirectives(context, { operation, directives, variables: values });
      const { data, errors = [] } = await execute({
        schema,
        document,
        variableValues: values,
        contextValue: context,
      });
      const pieces = data && written(data, keys);
      for (const piece of pieces ?? []) await call.hold(piece, piece.length);
      const placed = errors.flatMap(errorsOf);
      const reported = new Set(placed.map(({ thrown }) => thrown));
      const further = unplacedErrors(context).flatMap(errorsOf);
      return {
        data: pieces,
        errors: [...placed, ...further.filter(({ thrown }) => !reported.has(thrown))],
        extensions: undefined,
      };
    },
    stream: (call) => {
      checkIncremental(call.variables.values);
      return undefined;
    },
  };
}

/** Such operations are refused: graphql-js answers introspection without a pause, 100 ms for a large schema. */
function selectsIntrospection(schema: GraphQLSchema, document: DocumentNode): boolean {
  const root = schema.getQueryType()!.name;
  return selectsField(schema, document, new Set([`${root}.__schema`, `${root}.__type`]));
}

function introspectionBeside() {
  return codedError(
    'OPERATION_TOO_COMPLEX',
    'The operation has introspection beside a field that was added to this gateway. Send them in two operations.',
  );
}

interface Directed {
  readonly directives?: readonly DirectiveNode[] | undefined;
}

/**
 * Refuses directives of the service that graphql-js and graphql-tools leave out of what they delegate. Those of a company
 * are for its own resolvers and plugins.
 *
 * @throws BAD_USER_INPUT
 */
function checkDirectives(
  document: DocumentNode,
  operation: OperationDefinitionNode,
  ofService: (node: Directed) => readonly DirectiveNode[],
): void {
  const fragments = fragmentsOf(document);
  const refuse = (node: Directed) => {
    const directive = serviceDirective({ directives: ofService(node) });
    if (directive) throw refusedDirective(directive);
    return true;
  };
  [...fragments.values(), ...(operation.variableDefinitions ?? [])].forEach(refuse);
  walkFields(operation.selectionSet.selections, true, {
    fragments,
    enter: refuse,
    field: () => {},
  });
}

function refusedDirective({ name }: DirectiveNode) {
  return codedError(
    'BAD_USER_INPUT',
    `@${name.value} cannot be used at a variable, a definition of a fragment, or a fragment at the root of an operation that ` +
      'selects a field that was added to this gateway. Put it at the fields of the service or at the operation, or ' +
      'send these fields in an operation of their own.',
  );
}

/* Bytes of memory, estimated from those of documents: see operations.ts. */
const BYTES_OF_PLAN = 4_000;
const BYTES_OF_CHARACTER = 120;

function valuesOf({ variables }: Call, names: readonly string[]): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const name of names) {
    const value = variables.uncoerced(name);
    if (value !== undefined) values[name] = exactly(value);
  }
  return values;
}

/** Writes the members of `data` with the keys of the caller. There are few enough values for this to take milliseconds. */
function written(data: Readonly<Record<string, unknown>>, keys: Keys): readonly Buffer[] {
  const pieces: Buffer[] = [];
  let text = '';
  writeMembers(data, keys);
  endPiece();
  return pieces;

  function endPiece(): void {
    pieces.push(Buffer.from(text));
    text = '';
  }

  function writeMembers(object: Readonly<Record<string, unknown>>, below: Keys): void {
    let separator = '';
    for (const name of Object.keys(object)) {
      const key = below.get(name);
      text += `${separator}${JSON.stringify(key?.name ?? name)}:`;
      separator = ',';
      write(object[name], key);
    }
    if (text.length >= STEP) endPiece();
  }

  function write(value: unknown, key: Key | undefined): void {
    if (value === null || value === undefined) text += 'null';
    else if (!key || key.leaf !== undefined) text += jsonOf(value);
    else if (Array.isArray(value)) {
      text += '[';
      for (const [i, element] of value.entries()) {
        if (i > 0) text += ',';
        write(element, key);
      }
      text += ']';
    } else {
      text += '{';
      writeMembers(value as Readonly<Record<string, unknown>>, key.below);
      text += '}';
    }
  }
}

/** Writes a leaf. A custom scalar may be something that JSON cannot represent, such as a function. */
function jsonOf(leaf: unknown): string {
  const text = JSON.stringify(leaf) as string | undefined;
  return text ?? 'null';
}

interface ThrownError {
  readonly thrown: unknown;
  readonly path: GraphQLError['path'];
}

type ResultError = NonNullable<ExecutionResult['errors']>[number];

/** One field can fail for several reasons. */
function errorsOf(error: ResultError): readonly ThrownError[] {
  const { originalError } = error;
  if (!(originalError instanceof AggregateError)) return [errorAt(error, error.path)];
  return originalError.errors.map((each: unknown) =>
    errorAt(each, (each instanceof GraphQLError ? each.path : undefined) ?? error.path),
  );
}

function errorAt(error: unknown, path: GraphQLError['path']): ThrownError {
  let thrown = error;
  // Each delegation has wrapped it in an error with another path.
  while (thrown instanceof GraphQLError && thrown.originalError instanceof GraphQLError) {
    thrown = thrown.originalError;
  }
  return {
    thrown,
    path: path?.map((step) => (typeof step === 'string' ? callerKey(step) : step)),
  };
}
