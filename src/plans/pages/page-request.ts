import {
  getNamedType,
  getNullableType,
  GraphQLInt,
  isRequiredArgument,
  type ArgumentNode,
  type FieldNode,
  type GraphQLArgument,
  type GraphQLInputType,
  type GraphQLObjectType,
  type SelectionNode,
  type VariableDefinitionNode,
} from 'graphql';
import type { UpstreamError } from '../../answers/answer-errors.ts';
import { descend, readEnvelope } from '../../answers/envelope.ts';
import { NO_PAGES } from '../../answers/nulling-pages.ts';
import {
  keyBytesOf,
  shapeOf,
  type FieldShape,
  type KeyBytes,
  type ObjectShape,
  type Shape,
  type ShapeScope,
} from '../../answers/shape.ts';
import type { Json } from '../../json.ts';
import type { PageSizes } from '../../paging/list-walk.ts';
import type { Pausable } from '../../pausable.ts';
import { LARGEST_PAGE, type Adapter } from '../../schema/derived.ts';
import type { CallVariables, UpstreamRequest } from '../call.ts';
import {
  argumentNode,
  fieldNode,
  orTypename,
  variableDefinitionNode,
} from '../requests/added-fields.ts';
import type { SizedList } from '../requests/accepted-sizes.ts';
import {
  writeRequest,
  type RequestWriter,
  type PagesToInline,
  type WrittenOperation,
} from '../requests/request-text.ts';
import { resultReading } from '../requests/results.ts';
import type { ReadingTelemetry } from '../telemetry.ts';
import { COUNT_KEY, pageScanner, readPage, type PageAnswer, type PageForm } from './read-page.ts';
import { identifyingFor } from './record-identity.ts';
import type { WayToParent } from './way-to-parent.ts';

/** Makes the requests for the pages of one list, with what an operation selects of its records. Written once. */
export interface PageRequests {
  /** The bytes that the keys of one record take, and how many of them are due to aliases. */
  readonly keyBytes: KeyBytes;
  /** Equal for operations that select the same fields of the same records. */
  name(variables: CallVariables): string;
  /** How large its pages may be: see accepted-sizes.ts. */
  readonly sized: SizedList;
  request(
    variables: CallVariables,
    page: PageArguments,
    pages?: PagesToInline,
  ): UpstreamRequest<PageAnswer>;
  /** Reads a first page that was inlined. @param keys of its lists of records, one for each selection */
  readInlined(
    page: Json | undefined,
    errors: readonly UpstreamError[],
    keys: readonly string[],
  ): Pausable<PageAnswer>;
}

export interface PageArguments {
  readonly first: number | undefined;
  readonly after: string | null;
  /** Fewer records than wanted: the page costs its share of a whole one. */
  readonly isPart?: boolean;
  /** The parent's id as JSON, for a nested list. */
  readonly parentId?: string | undefined;
}

interface PageRequestParts {
  readonly writer: RequestWriter;
  readonly scope: ShapeScope;
  readonly operation: WrittenOperation;
  readonly adapter: Adapter;
  /** As the caller wrote them. Only those that the upstream knows are sent. */
  readonly args: readonly ArgumentNode[];
  /** The selections of each record: several where a connection selects both `nodes` and `edges { node }`. */
  readonly recordSelections: readonly (readonly SelectionNode[])[];
  /** Whether the count of the pages is requested, where they have one. */
  readonly counts: boolean;
  /** How a nested list is reached. */
  readonly way?: WayToParent | undefined;
  readonly telemetry: ReadingTelemetry;
}

const PARENT_ID = '_rsParentId';
const FIRST = '_rs_first';
const AFTER = '_rs_after';

export function pageRequests(parts: PageRequestParts): PageRequests {
  const { writer, scope, operation, adapter, recordSelections, way } = parts;
  const identity = identifyingFor(
    writer.schema,
    adapter,
    recordSelections[0] ?? [],
    scope.globalIds,
  );
  const keys = recordSelections.map((_, i) => (i === 0 ? 'items' : `_rsItems${i}`));
  const lists = recordSelections.map((selections, i) =>
    fieldNode('items', {
      alias: keys[i],
      selections: orTypename([...(i === 0 ? identity.selections : []), ...selections]),
    }),
  );
  const sizes = sizeFields(adapter);
  const info = fieldNode('pageInfo', {
    selections: ['hasNextPage', 'endCursor', ...sizes].map((name) => fieldNode(name)),
  });
  const counts = parts.counts ? countFields(adapter) : [];
  const result = resultReading(adapter.result, scope, parts.telemetry);
  const filters = new Set(adapter.filters.map(({ name }) => name));
  const args = [
    argumentNode(adapter.first.name, FIRST),
    argumentNode(adapter.after.name, AFTER),
    ...parts.args.filter(({ name }) => filters.has(name.value)),
  ];
  const list = fieldNode(adapter.name, {
    selections: result.select([...lists, info, ...counts]),
    args,
  });
  const root = [way ? way.wrap(list, PARENT_ID) : list];
  const variableDefinitions = [
    ...operation.variableDefinitions,
    ...definitions(adapter),
    ...(way?.definitions(PARENT_ID) ?? []),
  ];
  const write = (pages: PagesToInline) =>
    writeRequest(writer, { ...operation, variableDefinitions }, root, pages, scope);
  const whole = write('all');
  const shapes = recordSelections.map((selections, i) =>
    recordShape(parts, i === 0 ? identity : undefined, selections),
  );
  const form: PageForm = {
    adapter,
    identity,
    shapes,
    keys,
    sizes,
    hasCount: counts.length > 0,
    result,
    way,
  };
  const scan = pageScanner(form);

  return {
    keyBytes: keyBytesOf(shapes),
    name: whole.name,
    sized: {
      list: `${adapter.parent}.${adapter.name}`,
      selection: whole.selection,
      begin: adapter.page,
      hasInlinedPages: whole.hasInlinedPages,
    },
    request: (variables, { first, after, parentId, isPart = false }, pages = 'all') => {
      const written = pages === 'all' ? whole : write(pages);
      const values: Record<string, unknown> = {};
      const own: Record<string, string> = {};
      if (first !== undefined) own[FIRST] = String((values[FIRST] = first));
      if (after !== null) own[AFTER] = JSON.stringify((values[AFTER] = after));
      if (parentId !== undefined) own[PARENT_ID] = parentId;
      return {
        kind: 'query',
        field: written.field,
        key: written.key(variables),
        body: written.body(variables, own),
        pages: isPart
          ? (written.pages(variables, { [FIRST]: LARGEST_PAGE }) * (first ?? 1)) / LARGEST_PAGE
          : written.pages(variables, values),
        scan: way
          ? function* scanned(bytes) {
              const page = yield* scan(bytes);
              return page && way.isReached(page.parentId, parentId) ? page : undefined;
            }
          : scan,
        read: function* read(answer, status) {
          const { data: value, errors, nullingPages, tooBig } = yield* readEnvelope(answer, status);
          const found = way
            ? way.descend({ value, errors }, { key: adapter.name, parentId })
            : descend({ value, errors }, [adapter.name]);
          return { ...(yield* readPage(form, found)), nullingPages, tooBig };
        },
      };
    },
    readInlined: function* readInlined(page, errors, inlined) {
      return {
        ...(yield* readPage({ ...form, keys: inlined }, { value: page, errors })),
        nullingPages: NO_PAGES,
      };
    },
  };
}

/** The `first` to send for the largest page; undefined to leave it out, so that the upstream's own limit applies. */
export function pageSizeOf({ first }: Adapter): number | undefined {
  return isRequiredArgument(first) ? LARGEST_PAGE : undefined;
}

/** The sizes to request pages in, where the service wants to be told one. */
export function pageSizesOf(adapter: Adapter): PageSizes | undefined {
  const usual = pageSizeOf(adapter);
  return usual === undefined ? undefined : { usual, largest: LARGEST_TRIED };
}

/** Of the limits that services of this kind are known to have. */
const LARGEST_TRIED = 200;

/** Selects the count of a page, if it has one. */
export function countFields({ count }: Adapter): readonly FieldNode[] {
  return count === undefined ? [] : [fieldNode(count, { alias: COUNT_KEY })];
}

/** The field of `pageInfo` with the page size that the upstream used, if there is one. */
function sizeFields({ pageType }: Adapter): readonly string[] {
  const pageInfo = getNamedType(pageType.getFields()['pageInfo']!.type) as GraphQLObjectType;
  const first = pageInfo.getFields()['first'];
  return first && getNullableType(first.type) === GraphQLInt ? ['first'] : [];
}

function definitions({ first, after }: Adapter): VariableDefinitionNode[] {
  return [
    variableDefinitionNode(FIRST, variableType(first)),
    variableDefinitionNode(AFTER, variableType(after)),
  ];
}

/** An argument with a default may be left out, and so may its variable. */
function variableType(arg: GraphQLArgument): GraphQLInputType {
  return isRequiredArgument(arg) ? arg.type : getNullableType(arg.type);
}

function recordShape(
  { scope, adapter }: PageRequestParts,
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
