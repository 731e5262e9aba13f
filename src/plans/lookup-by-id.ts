import { astFromType } from '@graphql-tools/utils';
import { Kind, OperationTypeNode, type FieldNode, type GraphQLObjectType } from 'graphql';
import type { UpstreamError } from '../answers/errors.ts';
import { readValue } from '../answers/read.ts';
import { readAnswer, type Found } from '../answers/service-answer.ts';
import { shapeOf, type Shape } from '../answers/shape.ts';
import type { Json } from '../json.ts';
import type { EntityLookup } from '../schema/derived.ts';
import type { Call } from './call.ts';
import { PageFailure } from './fetch-page.ts';
import type { LookupParts } from './lookup-parts.ts';
import type { Finding, RecordId, RecordLookup } from './record-loader.ts';
import { askSparingParents, parentsTakenAlong } from './sparing-parents.ts';
import {
  field,
  notEmpty,
  writeRequest,
  type RequestText,
  type WantedPages,
} from './upstream-request.ts';

type ById = Extract<EntityLookup, { kind: 'id' }>;

/** Ids that are asked for in one request. */
const TOGETHER = 50;
/** So many, of which one or more failed the others, are asked for singly. */
const A_FEW = 6;

/** What was answered to several root fields of one request. */
interface AnsweredTogether {
  /** One for each; undefined when the request failed as a whole, so that none tells on its own. */
  readonly values: readonly Found[] | undefined;
  /** The upstream did not even begin: a variable, or the request itself, does not suit it. */
  readonly isRefused: boolean;
  readonly takenAlong: ReadonlySet<string>;
}

/** Finds records by the field of the upstream that gives one by its id: many in one request, by aliases. */
export function lookupById(
  { writer, scope, operation, selections }: LookupParts,
  by: ById,
): (call: Call) => RecordLookup {
  const root = scope.schema.getQueryType() as GraphQLObjectType;
  const shape: Shape = {
    ...shapeOf(scope, root.getFields()[by.field]!.type, selections),
    nullable: true,
  };
  const texts = new Map<string, RequestText>();
  const textFor = (count: number, wanted: WantedPages): RequestText => {
    const name = `${count} ${typeof wanted === 'string' ? wanted : [...wanted].join(' ')}`;
    const known = texts.get(name) ?? written(count, wanted);
    if (typeof wanted === 'string') texts.set(name, known);
    return known;
  };

  return (call) => ({
    name: `${by.field} ${textFor(1, 'all').name(call.variables)}`,
    find: async (ids) => {
      const values = await Promise.all(
        batches(ids).map((batch) =>
          ask(batch, call).catch((error: Error) => batch.map(() => error)),
        ),
      );
      return new Map(values.flat().flatMap((value, at) => foundFor(shape, ids[at]!, value)));
    },
  });

  async function ask(ids: readonly RecordId[], call: Call): Promise<readonly (Found | Error)[]> {
    const { values, isRefused } = await send(ids, call);
    if (values) return values;
    if (!isRefused) return inParts(ids, call);
    const some = await alone(ids.slice(0, 2), call);
    // Two ids, one reason: it is the request that does not suit the service, whoever is asked for.
    return areAlike(some)
      ? ids.map((_, at) => some[at] ?? some[0]!)
      : [...some, ...(await inParts(ids.slice(2), call))];
  }

  /** One of them failed all: the others do not go with it. Mostly it is one, which halving finds soonest. */
  async function inParts(
    ids: readonly RecordId[],
    call: Call,
  ): Promise<readonly (Found | Error)[]> {
    if (ids.length <= A_FEW) return alone(ids, call);
    const half = Math.ceil(ids.length / 2);
    const parts = [ids.slice(0, half), ids.slice(half)].map((part) =>
      send(part, call).then(
        ({ values }) => values ?? inParts(part, call),
        (error: Error) => part.map(() => error),
      ),
    );
    return (await Promise.all(parts)).flat();
  }

  async function alone(ids: readonly RecordId[], call: Call): Promise<readonly (Found | Error)[]> {
    const each = ids.map((id) =>
      send([id], call).then(
        ({ values }) => values!,
        (error: Error) => [error],
      ),
    );
    return (await Promise.all(each)).flat();
  }

  function send(ids: readonly RecordId[], call: Call): Promise<AnsweredTogether> {
    const own = Object.fromEntries(ids.map((id, at) => [variableFor(at), JSON.stringify(id)]));
    return askSparingParents(call, (wanted) => {
      const text = textFor(ids.length, wanted);
      return {
        kind: 'query',
        field: text.field,
        body: text.body(call.variables, own),
        key: text.key(call.variables),
        pages: text.pages(call.variables),
        scan: () => undefined,
        read: (answer) => readTogether(answer, ids.length),
      };
    });
  }

  function written(count: number, wanted: WantedPages): RequestText {
    const fields: FieldNode[] = [];
    const definitions = [...operation.variableDefinitions];
    for (let at = 0; at < count; at += 1) {
      const name = { kind: Kind.NAME as const, value: variableFor(at) };
      const variable = { kind: Kind.VARIABLE as const, name };
      fields.push({
        ...field(by.field, { alias: keyFor(at), selections: notEmpty(selections) }),
        arguments: [
          {
            kind: Kind.ARGUMENT,
            name: { kind: Kind.NAME, value: by.argument.name },
            value: variable,
          },
        ],
      });
      definitions.push({
        kind: Kind.VARIABLE_DEFINITION,
        variable,
        type: astFromType(by.argument.type),
      });
    }
    const query = {
      ...operation,
      operation: OperationTypeNode.QUERY,
      variableDefinitions: definitions,
    };
    return writeRequest(writer, query, fields, wanted);
  }
}

/** Not `_rs_…`: those are the arguments of lists. */
function variableFor(at: number): string {
  return `_rsKey${at}`;
}

function keyFor(at: number): string {
  return `_rsRecord${at}`;
}

function readTogether(answer: Json, count: number): AnsweredTogether {
  const { data, errors } = readAnswer(answer);
  const keys = Array.from({ length: count }, (_, at) => keyFor(at));
  const isWhole = data !== undefined && !data.isNull;
  return {
    values: isWhole || count === 1 ? valuesOf(data, errors, keys) : undefined,
    isRefused: data === undefined,
    takenAlong: parentsTakenAlong(data, errors),
  };
}

/** What stands at none of the fields may be why any of them is null; else it is put beside the first. */
function valuesOf(
  data: Json | undefined,
  errors: readonly UpstreamError[],
  keys: readonly string[],
): Found[] {
  const byKey = new Map<string, UpstreamError[]>(keys.map((key) => [key, []]));
  const elsewhere: UpstreamError[] = [];
  for (const error of errors) {
    const at = byKey.get(String(error.path?.[0]));
    if (at) at.push({ ...error, path: error.path!.slice(1) });
    else elsewhere.push({ ...error, path: [] });
  }
  const values = keys.map((key) => ({ value: data?.get(key), errors: byKey.get(key)! }));
  const unexplained = values.filter(({ value, errors: own }) => isNone(value) && own.length === 0);
  for (const { errors: own } of unexplained.length > 0 ? unexplained : values.slice(0, 1)) {
    own.push(...elsewhere);
  }
  return values;
}

function isNone(value: Json | undefined): boolean {
  return value === undefined || value.isNull;
}

function areAlike([one, other]: readonly (Found | Error)[]): boolean {
  const [reason, otherReason] = [one, other].map((each) =>
    each === undefined || each instanceof Error || !isNone(each.value)
      ? undefined
      : each.errors[0]?.message,
  );
  return reason !== undefined && reason === otherReason;
}

function batches(ids: readonly RecordId[]): (readonly RecordId[])[] {
  return Array.from({ length: Math.ceil(ids.length / TOGETHER) }, (_, at) =>
    ids.slice(at * TOGETHER, (at + 1) * TOGETHER),
  );
}

function foundFor(
  shape: Shape,
  id: RecordId,
  found: Found | Error,
): (readonly [RecordId, Finding])[] {
  if (found instanceof Error) return [[id, found]];
  const { value, errors } = found;
  if (isNone(value) && errors.length === 0) return [];
  // The whole record failed: that is said in its place.
  if (isNone(value) && errors.every(({ path }) => path?.length === 0))
    return [[id, new PageFailure(errors)]];
  return [[id, { record: readValue(shape, value, errors), beside: [] }]];
}
