import { astFromType } from '@graphql-tools/utils';
import {
  Kind,
  OperationTypeNode,
  type FieldNode,
  type GraphQLResolveInfo,
  type SelectionNode,
} from 'graphql';
import { hash } from 'node:crypto';
import { askTogether, type AnsweredTogether } from '../asking/ask-together.ts';
import { nameOf } from '../asking/ask-upstream.ts';
import { field } from '../asking/page-question.ts';
import { selectionContext } from '../asking/response-places.ts';
import type { QuestionContext, UpstreamLink } from '../asking/upstream-link.ts';
import type { UpstreamValue } from '../asking/upstream-value.ts';
import type { EntityLookup } from '../derivation/entity.ts';
import type { Finding, LookupContext, RecordId, RecordLookup } from './record-loader.ts';

type ById = Extract<EntityLookup, { kind: 'id' }>;

/** Ids that are asked for in one request. */
const TOGETHER = 50;
/** So many, of which one or more failed the others, are asked for singly. */
const A_FEW = 6;

/** Finds records by the field of the upstream that gives one by its id: many in one request, by aliases. */
export function lookupById(
  link: UpstreamLink,
  by: ById,
  selections: readonly SelectionNode[],
  info: GraphQLResolveInfo,
): RecordLookup {
  const question: QuestionContext = {
    operation: OperationTypeNode.QUERY,
    variableDefinitions: info.operation.variableDefinitions ?? [],
    fragments: info.fragments,
    variables: selectionContext(info).variables,
  };
  const selected = nameOf(link, { ...question, field: field(by.field, { selections }) });
  return {
    name: hash('sha256', `${by.field} ${selected}`),
    find: async (ids, context) => {
      const values = await Promise.all(
        batches(ids).map((batch) =>
          ask(batch, context).catch((error: Error) => batch.map(() => error)),
        ),
      );
      return new Map(values.flat().flatMap((value, at) => foundFor(ids[at]!, value)));
    },
  };

  async function ask(
    ids: readonly RecordId[],
    context: LookupContext,
  ): Promise<readonly (UpstreamValue | Error)[]> {
    const { values, isRefused } = await send(ids, context);
    if (values) return values;
    if (!isRefused) return inParts(ids, context);
    const some = await alone(ids.slice(0, 2), context);
    // Two ids, one reason: it is the request that does not suit the service, whoever is asked for.
    return areAlike(some)
      ? ids.map((_, at) => some[at] ?? some[0]!)
      : [...some, ...(await inParts(ids.slice(2), context))];
  }

  /** One of them failed all: the others do not go with it. Mostly it is one, which halving finds soonest. */
  async function inParts(
    ids: readonly RecordId[],
    context: LookupContext,
  ): Promise<readonly (UpstreamValue | Error)[]> {
    if (ids.length <= A_FEW) return alone(ids, context);
    const half = Math.ceil(ids.length / 2);
    const parts = [ids.slice(0, half), ids.slice(half)].map((part) =>
      send(part, context).then(
        ({ values }) => values ?? inParts(part, context),
        (error: Error) => part.map(() => error),
      ),
    );
    return (await Promise.all(parts)).flat();
  }

  async function alone(
    ids: readonly RecordId[],
    context: LookupContext,
  ): Promise<readonly (UpstreamValue | Error)[]> {
    const each = ids.map((id) =>
      send([id], context).then(
        ({ values }) => values!,
        (error: Error) => [error],
      ),
    );
    return (await Promise.all(each)).flat();
  }

  function send(ids: readonly RecordId[], context: LookupContext): Promise<AnsweredTogether> {
    return askTogether(link, fieldsFor(ids), withKeys(question, by, ids), context);
  }

  function fieldsFor(ids: readonly RecordId[]): FieldNode[] {
    return ids.map((_, at) => ({
      ...field(by.field, { alias: `_rsRecord${at}`, selections }),
      arguments: [
        {
          kind: Kind.ARGUMENT,
          name: { kind: Kind.NAME, value: by.argument.name },
          value: { kind: Kind.VARIABLE, name: { kind: Kind.NAME, value: keyName(at) } },
        },
      ],
    }));
  }
}

function areAlike([one, other]: readonly (UpstreamValue | Error)[]): boolean {
  const [reason, otherReason] = [one, other].map((each) =>
    each instanceof Error || each?.value !== null ? undefined : each.errors[0]?.message,
  );
  return reason !== undefined && reason === otherReason;
}

function withKeys(question: QuestionContext, { argument }: ById, ids: readonly RecordId[]) {
  const keys = ids.map((_, at) => ({
    kind: Kind.VARIABLE_DEFINITION as const,
    variable: {
      kind: Kind.VARIABLE as const,
      name: { kind: Kind.NAME as const, value: keyName(at) },
    },
    type: astFromType(argument.type),
  }));
  return {
    ...question,
    variableDefinitions: [...question.variableDefinitions, ...keys],
    variables: {
      ...question.variables,
      ...Object.fromEntries(ids.map((id, at) => [keyName(at), id])),
    },
  };
}

/** Not `_rs_…`: those are the arguments of lists. */
function keyName(at: number): string {
  return `_rsKey${at}`;
}

function batches(ids: readonly RecordId[]): (readonly RecordId[])[] {
  return Array.from({ length: Math.ceil(ids.length / TOGETHER) }, (_, at) =>
    ids.slice(at * TOGETHER, (at + 1) * TOGETHER),
  );
}

function foundFor(id: RecordId, value: UpstreamValue | Error): (readonly [RecordId, Finding])[] {
  if (value instanceof Error) return [[id, value]];
  const isNone = value.value === null && value.errors.length === 0;
  return isNone ? [] : [[id, { found: value, beside: [] }]];
}
