import type { GraphQLObjectType } from 'graphql';
import { isOfService, type AnswerError } from '../../answers/answer-errors.ts';
import type { CollectedField, DeferUse } from '../../answers/collect-fields.ts';
import type { DeferredReading } from '../../answers/read.ts';
import type { Fragments } from '../../selections.ts';
import type { Call, Requester } from '../call.ts';
import { withCursorHints, type ForwardedAnswer, type ForwardedFields } from '../forwarded.ts';
import { readAll, type FieldStreams } from '../lists/all-field.ts';
import { readConnection } from '../lists/connection-field.ts';
import type { Drains } from '../lists/drains.ts';
import { openList, type ListField } from '../lists/list-field.ts';
import { fillPlaceholders } from '../lists/nested-lists.ts';
import {
  isFilled,
  Later,
  type FieldValue,
  type OperationAnswer,
  type Output,
  type Written,
} from '../output.ts';
import { repeated, type AcceptedSizes, type Attempt } from '../requests/accepted-sizes.ts';
import { requestSparingParents, type PagesToInline } from '../requests/request-text.ts';

export type RootField = {
  readonly key: string;
  readonly collected: CollectedField;
  readonly isNullable: boolean;
} & (
  | { readonly kind: 'forwarded' }
  | { readonly kind: 'list'; readonly list: ListField }
  | { readonly kind: 'read'; readonly read: (call: Call) => Promise<FieldValue> | FieldValue }
);

export function rootFieldName({ collected: { nodes } }: RootField): string {
  return nodes[0]!.name.value;
}

/** How the lists of an operation are sent, where it is answered in parts. */
type OperationStreams = (field: ListField) => FieldStreams;

/** The root fields of a variant that are sent together: those without `@defer`, or those of one `@defer`. */
export interface FieldGroup {
  readonly fields: readonly RootField[];
  /** Those of them that the service answers. */
  readonly forwarded: readonly RootField[];
  /** Whether the service answers the whole operation. */
  readonly isForwardedOnly: boolean;
  /** Requests the forwarded fields; undefined if there are none. */
  readonly service: ForwardedFields | undefined;
  readonly root: GraphQLObjectType;
  readonly fragments: Fragments;
  readonly isQuery: boolean;
  readonly drains: Pick<Drains, 'separate'>;
  readonly sizes: AcceptedSizes;
}

/** The plan of an operation for one outcome of its conditions, and one set of sizes of inlined pages. */
export interface Variant {
  readonly fields: readonly RootField[];
  /**
   * Answers the root fields without `@defer`, or those of one `@defer`.
   *
   * @param streams in an answer in parts
   */
  answer(call: Call, use?: DeferUse, streams?: OperationStreams): Promise<OperationAnswer>;
}

/** @param nestedAliasBytes by how many bytes aliases lengthen each record of a nested list, at most */
export function createVariant(
  fields: readonly RootField[],
  groups: ReadonlyMap<DeferUse | undefined, FieldGroup>,
  { nestedAliasBytes, isOneList }: { nestedAliasBytes: number; isOneList: boolean },
): Variant {
  return {
    fields,
    answer: (call, use, streams) => {
      // Of nested lists, only how many records they may have together is known before their parents are read.
      if (nestedAliasBytes > 0 && !use) call.held.expect(nestedAliasBytes * call.drainBudget.max);
      const group = groups.get(use);
      if (!group) return NOTHING;
      if (isOneList) call.stopSharing();
      return answerGroup(group, call, streams);
    },
  };
}

const NOTHING = Promise.resolve({ data: [], errors: [], extensions: undefined });

/** Answers the fields of a group together. @param streams in an answer in parts */
async function answerGroup(
  group: FieldGroup,
  call: Call,
  streams: OperationStreams | undefined,
): Promise<OperationAnswer> {
  const { fields, forwarded, isForwardedOnly, root } = group;
  // The only request of an operation has none to be shared with.
  const requester = isForwardedOnly ? { request: call.send.bind(call) } : call;
  const answered = group.service && requestForwarded(group, call, requester);
  let values: readonly (FieldValue | undefined)[] = [];
  if (!isForwardedOnly) {
    // It may fail while the other fields are read.
    answered?.catch(() => {});
    values = await Promise.all(
      fields.map(async (field) =>
        field.kind === 'forwarded' ? undefined : readField(call, field, streams),
      ),
    );
  }
  const output: Output = { parts: [], errors: [] };
  let service: ForwardedAnswer | undefined;
  try {
    service = await answered;
    const waiting = service && call.hold(service, service.size);
    if (waiting) await waiting;
    if (service && isForwardedOnly) return await wholeAnswer(service, group, call);
  } catch (error) {
    service = undefined;
    output.errors.push({ thrown: error, path: [firstOf(forwarded)] });
  }
  if (service) output.errors.push(...withHints(service.errors, group, call));
  const later = streams && new Later();
  const extensions = service?.extensions;
  const answers = fields.map((field, i) => ({
    field,
    value: values[i] ?? ofService(service, forwarded.indexOf(field)) ?? withoutService(field, root),
  }));
  // The errors of forwarded fields were added above.
  let isNull = answers.some((answer) => answer.field.kind === 'forwarded' && nullsRoot(answer));
  for (const [i, answer] of answers.entries()) {
    const { field, value } = answer;
    const isMissing = nullsRoot(answer);
    // As in graphql-js, nulls that propagate to the root have one error, and those of the service.
    const errors = isNull && isMissing ? value.errors.filter(isOfService) : value.errors;
    for (const error of errors) output.errors.push(error);
    if (value.later) later?.add(value.later);
    isNull ||= isMissing;
    output.parts.push(`${i > 0 ? ',' : ''}${JSON.stringify(field.key)}:`);
    for (const part of value.parts ?? ['null']) output.parts.push(part);
  }
  if (isNull) return { data: null, errors: output.errors, extensions };
  return filled(call, output, { extensions, later });
}

/** The answer to an operation of which the service answers every field. */
function wholeAnswer(
  { data, errors: reported, extensions }: ForwardedAnswer,
  group: FieldGroup,
  call: Call,
): OperationAnswer | Promise<OperationAnswer> {
  const errors = withHints(reported, group, call);
  if (!data) return { data, errors, extensions };
  const later = laterOf(data.deferred.flat());
  return filled(call, { parts: data.whole, errors }, { extensions, later });
}

/** Whether a null is where none is allowed, so that all data are null. */
function nullsRoot({ field, value }: { field: RootField; value: FieldValue }): boolean {
  return !value.parts && !field.isNullable;
}

function requestForwarded(
  group: FieldGroup,
  call: Call,
  requester: Pick<Requester, 'request'>,
): Promise<ForwardedAnswer> {
  const { service, isQuery } = group;
  if (!isQuery) return mutate(group, call);
  const request = (pages: PagesToInline) => service!.request(call.variables, pages);
  return service!.sized.hasInlinedPages
    ? requestWithPages(group, call, requester)
    : requestSparingParents(requester, request);
}

/**
 * Leaves out the first pages of nested lists where the service refuses the request with them. What it answers to the
 * rest, which is as the caller wrote it, is the answer.
 */
async function requestWithPages(
  { service, sizes }: FieldGroup,
  call: Call,
  requester: Pick<Requester, 'request'>,
): Promise<ForwardedAnswer> {
  const send = async ({ pages: inlined, isRepeated, trialMs }: Attempt) => {
    const write = (pages: PagesToInline) => {
      const request = service!.request(call.variables, pages);
      return isRepeated ? repeated(request, trialMs) : request;
    };
    const sent = requestSparingParents(requester, write, inlined);
    if (inlined === 'none' && trialMs === undefined)
      return { sent: await Promise.allSettled([sent]) };
    const answer = await sent;
    return { sent: [{ status: 'fulfilled', value: answer }] as const, tooBig: answer.tooBig };
  };
  const { answer } = await sizes.request(service!.sized, 1, send);
  const [outcome] = answer.sent;
  if (outcome.status === 'rejected') throw outcome.reason;
  return outcome.value;
}

/** Reads that start after the mutation was sent, or after it was answered, must not share what was read before. */
async function mutate({ service, drains }: FieldGroup, call: Call): Promise<ForwardedAnswer> {
  drains.separate();
  try {
    return await call.send(service!.request(call.variables));
  } finally {
    drains.separate();
  }
}

function withHints(
  errors: readonly AnswerError[],
  { forwarded, fragments }: FieldGroup,
  { variables }: Call,
): readonly AnswerError[] {
  if (errors.length === 0) return errors;
  const selections = forwarded.flatMap(({ collected: { nodes } }) => nodes);
  return withCursorHints(errors, { selections, fragments, variables: variables.values });
}

function readField(
  call: Call,
  field: Exclude<RootField, { kind: 'forwarded' }>,
  streams: OperationStreams | undefined,
): Promise<FieldValue> | FieldValue {
  if (field.kind === 'read') return field.read(call);
  const { list, key } = field;
  const read = list.connection ? readConnection : readAll;
  return read(() => openList(list, call), [key], streams?.(list));
}

/** @param field its index among the forwarded fields */
function ofService(service: ForwardedAnswer | undefined, field: number): FieldValue | undefined {
  if (!service) return undefined;
  const { data } = service;
  const later = laterOf(data?.deferred[field] ?? []);
  return { parts: data?.valueOf(field), errors: [], later };
}

function laterOf(readings: readonly DeferredReading[]): Later | undefined {
  return readings.length > 0 ? new Later(readings) : undefined;
}

/** The value of a forwarded field whose request failed: null, except for the root's `__typename`. */
function withoutService(field: RootField, root: GraphQLObjectType): FieldValue {
  const name = typenameOf(field, root);
  return { parts: name === undefined ? undefined : [name], errors: [] };
}

function typenameOf(field: RootField, root: GraphQLObjectType): string | undefined {
  return rootFieldName(field) === '__typename' ? JSON.stringify(root.name) : undefined;
}

/** The key of the first field that needs the service. */
function firstOf(fields: readonly RootField[]): string {
  return (fields.find((field) => rootFieldName(field) !== '__typename') ?? fields[0]!).key;
}

async function filled(
  call: Call,
  written: Written,
  further: Pick<OperationAnswer, 'extensions' | 'later'>,
): Promise<OperationAnswer> {
  const { parts, errors } = isFilled(written) ? written : await fillPlaceholders(call, written);
  return { ...further, data: parts, errors };
}
