import {
  getNamedType,
  getNullableType,
  GraphQLInt,
  isRequiredArgument,
  Kind,
  type ArgumentNode,
  type FieldNode,
  type GraphQLObjectType,
  type SelectionNode,
  type VariableDefinitionNode,
} from 'graphql';
import { astFromType } from '@graphql-tools/utils';
import type { UpstreamError } from '../answers/errors.ts';
import { descend, readAnswer } from '../answers/service-answer.ts';
import {
  keyBytesOf,
  shapeOf,
  type FieldShape,
  type KeyBytes,
  type ObjectShape,
  type Shape,
  type ShapeScope,
} from '../answers/shape.ts';
import type { Json } from '../json.ts';
import type { Adapter } from '../schema/derived.ts';
import type { CallVariables, UpstreamRequest } from './call.ts';
import { readPage, type PageAnswer, type PageReading } from './read-page.ts';
import { identifyingFor } from './record-identity.ts';
import { pageScanner } from './scan-page.ts';
import { NOBODY, parentsTakenAlong } from './sparing-parents.ts';
import {
  field,
  notEmpty,
  writeRequest,
  type RequestWriter,
  type WrittenOperation,
  type WantedPages,
} from './upstream-request.ts';
import type { WayToParent } from './way-to-parent.ts';

/** The pages of one list with what an operation selects of its records: written once, asked for again and again. */
export interface PageText {
  /** Of one record: the bytes of its keys, and of these what aliases add. */
  readonly keyBytes: KeyBytes;
  /** The same for all who ask for the same fields of the same records. */
  name(variables: CallVariables): string;
  request(
    variables: CallVariables,
    page: PageArguments,
    wanted?: WantedPages,
  ): UpstreamRequest<PageAnswer>;
  /** Reads a page that came along with its parent. @param keys the names of its lists of records, one for each place */
  readInlined(
    page: Json | undefined,
    errors: readonly UpstreamError[],
    keys: readonly string[],
  ): PageAnswer;
}

export interface PageArguments {
  readonly first: number | undefined;
  readonly after: string | null;
  /** The parent's id as JSON, for a list below another object than the root. */
  readonly parentId?: string | undefined;
}

export interface PageTextParts {
  readonly writer: RequestWriter;
  readonly scope: ShapeScope;
  readonly operation: WrittenOperation;
  readonly adapter: Adapter;
  /** The arguments that the caller gave for it; those that are not the upstream's are left out. */
  readonly args: readonly ArgumentNode[];
  /** What to select of each record, once for each place of the operation that shows records. */
  readonly places: readonly (readonly SelectionNode[])[];
  /** How the list is reached, where it is not a field of the root. */
  readonly way?: WayToParent | undefined;
}

const PARENT_ID = '_rsParentId';
const FIRST = '_rs_first';
const AFTER = '_rs_after';

export function pageText(parts: PageTextParts): PageText {
  const { writer, operation, adapter, places, way } = parts;
  const identity = identifyingFor(writer.schema, adapter.nodeType, places[0] ?? []);
  const keys = places.map((_, place) => (place === 0 ? 'items' : `_rsItems${place}`));
  const lists = places.map((selections, place) =>
    field('items', {
      alias: keys[place],
      selections: notEmpty([...(place === 0 ? identity.selections : []), ...selections]),
    }),
  );
  const sizes = sizeFields(adapter);
  const info = field('pageInfo', {
    selections: ['hasNextPage', 'endCursor', ...sizes].map((name) => field(name)),
  });
  const filters = new Set(adapter.filters.map(({ name }) => name));
  const list: FieldNode = {
    ...field(adapter.name, { selections: [...lists, info] }),
    arguments: [
      argument('first', FIRST),
      argument('after', AFTER),
      ...parts.args.filter(({ name }) => filters.has(name.value)),
    ],
  };
  const variableDefinitions = [
    ...operation.variableDefinitions,
    ...definitions(adapter),
    ...(way?.definitions(PARENT_ID) ?? []),
  ];
  const write = (wanted: WantedPages) =>
    writeRequest(
      writer,
      { ...operation, variableDefinitions },
      [way ? way.wrap(list, PARENT_ID) : list],
      wanted,
    );
  const whole = write('all');
  const shapes = places.map((selections, place) =>
    recordShape(parts, place === 0 ? identity : undefined, selections),
  );
  const scan = way ? undefined : pageScanner(adapter.name, keys, shapes, sizes);
  const reading: PageReading = { adapter, identity, shapes };

  return {
    keyBytes: keyBytesOf(shapes),
    name: whole.name,
    request: (variables, { first, after, parentId }, wanted = 'all') => {
      const written = wanted === 'all' ? whole : write(wanted);
      const values = {
        ...(first !== undefined && { [FIRST]: first }),
        ...(after !== null && { [AFTER]: after }),
      };
      const own = Object.fromEntries(
        Object.entries(values).map(([name, value]) => [name, JSON.stringify(value)]),
      );
      return {
        kind: 'query',
        field: written.field,
        key: written.key(variables),
        body: written.body(
          variables,
          parentId === undefined ? own : { ...own, [PARENT_ID]: parentId },
        ),
        pages: written.pages(variables, values),
        scan: (bytes) => scan?.(bytes),
        read: (answer) => {
          const { data: value, errors } = readAnswer(answer);
          const found = way
            ? way.descend({ value, errors }, { key: adapter.name, parentId })
            : descend({ value, errors }, [adapter.name]);
          return {
            ...readPage(reading, found, keys),
            takenAlong: parentsTakenAlong(value, errors),
          };
        },
      };
    },
    readInlined: (page, errors, inlined) => ({
      ...readPage(reading, { value: page, errors }, inlined),
      takenAlong: NOBODY,
    }),
  };
}

/** For a list that does not let `first` be left out (interface, section 8). */
const LARGEST_DOCUMENTED_PAGE = 50;

/** What to ask for where no size is wanted; undefined: nothing, so that the upstream gives its largest page. */
export function pageSizeOf({ field: list }: Adapter): number | undefined {
  return list.args.some((arg) => arg.name === 'first' && isRequiredArgument(arg))
    ? LARGEST_DOCUMENTED_PAGE
    : undefined;
}

/** The field of its pageInfo that tells the size which was really used, where there is one. */
function sizeFields({ field: list }: Adapter): readonly string[] {
  const page = getNamedType(list.type) as GraphQLObjectType;
  const pageInfo = getNamedType(page.getFields()['pageInfo']!.type) as GraphQLObjectType;
  const first = pageInfo.getFields()['first'];
  return first && getNullableType(first.type) === GraphQLInt ? ['first'] : [];
}

function argument(name: string, variable: string): ArgumentNode {
  return {
    kind: Kind.ARGUMENT,
    name: { kind: Kind.NAME, value: name },
    value: { kind: Kind.VARIABLE, name: { kind: Kind.NAME, value: variable } },
  };
}

function definitions({ field: list }: Adapter): VariableDefinitionNode[] {
  return list.args
    .filter(({ name }) => name === 'first' || name === 'after')
    .map((arg) => ({
      kind: Kind.VARIABLE_DEFINITION,
      variable: { kind: Kind.VARIABLE, name: { kind: Kind.NAME, value: `_rs_${arg.name}` } },
      // Where there is a default, leaving the variable out has to be allowed.
      type: astFromType(isRequiredArgument(arg) ? arg.type : getNullableType(arg.type)),
    }));
}

function recordShape(
  { scope, adapter }: PageTextParts,
  identity: ReturnType<typeof identifyingFor> | undefined,
  selections: readonly SelectionNode[],
): Shape {
  const shape = shapeOf(scope, adapter.recordType, selections);
  if (!identity) return shape;
  if (shape.kind === 'object')
    return identified(shape, adapter.nodeType as GraphQLObjectType, identity);
  if (shape.kind !== 'abstract') return shape;
  return {
    ...shape,
    of: (name) => {
      const one = shape.of(name);
      return one && identified(one, scope.schema.getType(one.type) as GraphQLObjectType, identity);
    },
  };
}

function identified(
  shape: ObjectShape,
  type: GraphQLObjectType,
  { ownKey, silentFields }: ReturnType<typeof identifyingFor>,
): ObjectShape {
  const own = (one: FieldShape) => (one.key === ownKey ? { ...one, idOf: type.name } : one);
  return { ...shape, fields: [...silentFields(type), ...shape.fields.map(own)] };
}
