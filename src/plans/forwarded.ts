import {
  Kind,
  OperationTypeNode,
  valueFromASTUntyped,
  type FieldNode,
  type FragmentDefinitionNode,
  type FragmentSpreadNode,
  type InlineFragmentNode,
  type SelectionNode,
} from 'graphql';
import {
  callerPath,
  isOfService,
  ADDED_KEY_PREFIX,
  type AnswerError,
  type UpstreamError,
} from '../answers/answer-errors.ts';
import {
  NO_PAGES,
  readEnvelope,
  slotScanner,
  slotsIn,
  type Envelope,
  type Slot,
} from '../answers/envelope.ts';
import { readValue, type DeferredReading, type Part } from '../answers/read.ts';
import type { ShapeScope } from '../answers/shape.ts';
import type { Json } from '../json.ts';
import { isGatewayCursor } from '../paging/cursor.ts';
import type { Pausable } from '../pausable.ts';
import { fieldsByKey, selectionsOf, type Fragments } from '../selections.ts';
import type { Call, UpstreamRequest } from './call.ts';
import type { Drains } from './lists/drains.ts';
import { isPlaceholder } from './output.ts';
import type { AcceptedSizes, SizedList } from './requests/accepted-sizes.ts';
import {
  writeRequest,
  type PagesToInline,
  type RequestWriter,
  type WrittenOperation,
} from './requests/request-text.ts';

/** The root fields that the service answers itself: requested together, as the caller wrote them. */
export interface ForwardedFields {
  /** @param isOnly whether it is the only request of the operation, so that it is not shared within the operation */
  request(call: Call, isOnly: boolean): Promise<ForwardedAnswer>;
  /** Returns the errors of an answer, with a hint where a cursor of the gateway was sent to a list of the service. */
  errorsOf(answer: ForwardedAnswer, call: Call): readonly AnswerError[];
}

interface ForwardedParts {
  readonly writer: RequestWriter;
  readonly sizes: AcceptedSizes;
  readonly drains: Pick<Drains, 'separate'>;
  readonly scope: ShapeScope;
  readonly operation: WrittenOperation;
  /** Those of the operation, with fragments and directives. */
  readonly selections: readonly SelectionNode[];
  /** Whether a root field is sent with this request. */
  readonly isSent: (node: FieldNode) => boolean;
  /** The fields to expect, in the order of the answer. */
  readonly fields: readonly Slot[];
}

export function forwardedFields({
  writer,
  sizes,
  drains,
  scope,
  operation,
  selections,
  isSent,
  fields,
}: ForwardedParts): ForwardedFields {
  const isQuery = operation.operation === OperationTypeNode.QUERY;
  const sent = reducedRoot(selections, operation.fragments, isSent);
  const reduced = { ...operation, fragments: sent.fragments };
  const write = (pages: PagesToInline) =>
    writeRequest(writer, reduced, sent.selections, pages, scope);
  // A mutation cannot be sent again without the inlined pages that failed.
  const whole = write(isQuery ? 'all' : 'safe');
  const scan = forwardedScanner(fields);
  const read = (answer: Json, status: number) => readForwarded(answer, fields, status);
  const sized: SizedList = {
    list: `${scope.schema.getQueryType()!.name}.${whole.field}`,
    selection: whole.selection,
    begin: undefined,
    hasInlinedPages: whole.hasInlinedPages,
    isOfCaller: true,
  };
  const requestOf = ({ variables }: Call, written = whole): UpstreamRequest<ForwardedAnswer> => ({
    kind: isQuery ? 'query' : 'mutation',
    body: written.body(variables),
    key: written.key(variables),
    pages: written.pages(variables),
    scan,
    read,
  });
  return {
    request: async (call, isOnly) => {
      if (!isQuery) return await mutate(call, requestOf(call));
      const send = (request: UpstreamRequest<ForwardedAnswer>) =>
        isOnly ? call.send(request) : call.request(request);
      if (!whole.hasInlinedPages) return await send(requestOf(call));
      // Where the service refuses the request with the first pages of nested lists, they are left out.
      const writePages = (_: unknown, pages: PagesToInline) =>
        requestOf(call, pages === 'all' ? whole : write(pages));
      const { answer } = await sizes.request(sized, 1, { write: writePages, send });
      return answer;
    },
    errorsOf: ({ errors }, { variables: { values } }) =>
      errors.length > 0 ? withCursorHints(errors, sent, values) : errors,
  };

  /** Reads that start after the mutation was sent, or after it was answered, must not share what was read before. */
  async function mutate(
    call: Call,
    request: UpstreamRequest<ForwardedAnswer>,
  ): Promise<ForwardedAnswer> {
    drains.separate();
    try {
      return await call.send(request);
    } finally {
      drains.separate();
    }
  }
}

/** The selections of the root that are sent, and their fragments. */
interface SentSelections {
  readonly selections: readonly SelectionNode[];
  readonly fragments: Fragments;
}

/**
 * Reduces selections of the root, and the fragments that they spread, to the fields to be sent. An empty
 * fragment is left out. One that changes gets a second definition under another name, since it may also be spread
 * below the root, where the service answers all of it.
 */
function reducedRoot(
  selections: readonly SelectionNode[],
  fragments: Fragments,
  isSent: (node: FieldNode) => boolean,
): SentSelections {
  const defined = new Map(fragments);
  const names = new Map<string, string | undefined>();
  let parts = 0;
  return { selections: selections.flatMap(leftOf), fragments: defined };

  function leftOf(selection: SelectionNode): SelectionNode | readonly [] {
    if (selection.kind === Kind.FIELD) return isSent(selection) ? selection : [];
    const left = selection.kind === Kind.INLINE_FRAGMENT ? reduced(selection) : renamed(selection);
    return left ?? [];
  }

  /** Returns the fragment itself if all of it is sent; undefined if nothing of it is. */
  function reduced<F extends FragmentDefinitionNode | InlineFragmentNode>(
    fragment: F,
  ): F | undefined {
    const all = fragment.selectionSet.selections;
    const left = all.flatMap(leftOf);
    if (left.length === 0) return undefined;
    const isSame = left.length === all.length && left.every((selection, i) => selection === all[i]);
    if (isSame) return fragment;
    return { ...fragment, selectionSet: { kind: Kind.SELECTION_SET, selections: left } };
  }

  function renamed(spread: FragmentSpreadNode): FragmentSpreadNode | undefined {
    const { value } = spread.name;
    if (!names.has(value)) names.set(value, nameOfReduced(value));
    const name = names.get(value);
    if (name === undefined) return undefined;
    return name === value ? spread : { ...spread, name: { kind: Kind.NAME, value: name } };
  }

  function nameOfReduced(name: string): string | undefined {
    const fragment = fragments.get(name);
    const left = fragment && reduced(fragment);
    if (!left || left === fragment) return left && name;
    // Numbered: operations that differ only in the names of their fragments send the same.
    let value: string;
    do value = `${ADDED_KEY_PREFIX}Part${parts++}`;
    while (defined.has(value));
    defined.set(value, { ...left, name: { kind: Kind.NAME, value } });
    return value;
  }
}

/** The answer of the service to the forwarded fields. Callers who send the same request share it. */
export interface ForwardedAnswer extends Omit<Envelope, 'data' | 'errors'> {
  /** Null if a null propagated to the root; undefined if the service did not execute the request. */
  readonly data: ForwardedData | null | undefined;
  /** The errors of the service, and those of values that their types do not allow. */
  readonly errors: readonly AnswerError[];
}

interface ForwardedData {
  /** All fields, with their keys. */
  readonly whole: readonly Part[];
  /** The value of one field. @param field its index */
  readonly valueOf: (field: number) => readonly Part[];
  /** What `@defer` puts off, by the index of the field that it is in. */
  readonly deferred: readonly (readonly DeferredReading[])[];
}

/** Makes a function that takes an answer as bytes; it returns undefined for one that has to be read in general. */
function forwardedScanner(
  fields: readonly Slot[],
): (bytes: Buffer) => Pausable<ForwardedAnswer | undefined> {
  const scan = slotScanner(fields);
  return function* scanned(bytes) {
    const slots = yield* scan(bytes);
    if (!slots) return undefined;
    const { whole, at, extensions } = slots;
    return {
      data: {
        whole: [whole],
        valueOf: (field) => [whole.subarray(at[2 * field], at[2 * field + 1])],
        deferred: NOTHING,
      },
      errors: NO_ERRORS,
      extensions,
      nullingPages: NO_PAGES,
      size: bytes.length,
    };
  };
}

const NO_ERRORS: readonly AnswerError[] = [];
const NOTHING: readonly never[] = [];

/** Reads an answer in general, whatever its form. */
function* readForwarded(
  answer: Json,
  fields: readonly Slot[],
  status: number,
): Pausable<ForwardedAnswer> {
  const envelope = yield* readEnvelope(answer, status);
  const { data, errors } = envelope;
  const isNull = data === undefined || data.isNull;
  if (isNull && errors.length > 0) {
    return { ...envelope, data: data && null, errors: errors.map(asCallerSees) };
  }
  const { slots, unplaced } = slotsIn(
    envelope,
    fields.map(({ key }) => key),
  );
  const reported: AnswerError[] = unplaced.map(asCallerSees);
  // An error without a path may explain any null.
  const isExplained = unplaced.some(({ path }) => !path);
  let isWhole = true;
  const deferred: DeferredReading[][] = [];
  const values: (readonly Part[])[] = [];
  for (const [field, { key, shape }] of fields.entries()) {
    const putOff: DeferredReading[] = [];
    deferred.push(putOff);
    if (shape.kind === 'typename') {
      values.push([JSON.stringify(shape.served)]);
      continue;
    }
    const { value, errors: ofField } = slots[field]!;
    const reading = yield* readValue(shape, value, ofField, isExplained);
    // As in graphql-js, nulls that propagate to the root have one error, and those of the service.
    const kept = isWhole ? reading.errors : reading.errors.filter(isOfService);
    for (const error of kept) reported.push({ ...error, path: [key, ...(error.path ?? [])] });
    if (!reading.parts) isWhole = false;
    for (const part of reading.deferred) putOff.push({ ...part, path: [key, ...part.path] });
    values.push(
      (reading.parts ?? []).map((part) =>
        isPlaceholder(part) ? { ...part, path: [key, ...part.path] } : part,
      ),
    );
  }
  const whole = () =>
    values.flatMap((parts, i): Part[] => [
      `${i > 0 ? ',' : ''}${JSON.stringify(fields[i]!.key)}:`,
      ...parts,
    ]);
  return {
    ...envelope,
    data: isWhole ? { whole: whole(), valueOf: (field) => values[field]!, deferred } : null,
    errors: reported.toSorted((a, b) => orderOf(a) - orderOf(b)),
  };
}

/** Sorts the errors of the service in its own order, and those of the gateway behind them. */
function orderOf(error: AnswerError): number {
  return isOfService(error) ? error.order : Number.MAX_SAFE_INTEGER;
}

function asCallerSees(error: UpstreamError): AnswerError {
  return error.path ? { ...error, path: callerPath(error.path) } : error;
}

/**
 * Adds a hint to errors of the service about lists with a cursor of the gateway among their arguments: the service does not
 * know these cursors, and a caller may confuse those of a connection with those of the plain list.
 */
function withCursorHints(
  errors: readonly AnswerError[],
  sent: SentSelections,
  variables: Readonly<Record<string, unknown>>,
): readonly AnswerError[] {
  const hints = new Map<string, string>();
  return errors.map((error) => {
    if ('thrown' in error || !error.path) return error;
    const keys = error.path.filter((step) => typeof step === 'string');
    const place = keys.join('.');
    const hint = hints.get(place) ?? hintFor(sent, variables, keys);
    hints.set(place, hint);
    return hint === '' ? error : { ...error, message: `${error.message} ${hint}` };
  });
}

function hintFor(
  { selections, fragments }: SentSelections,
  variables: Readonly<Record<string, unknown>>,
  keys: readonly string[],
): string {
  let nodes: readonly FieldNode[] = [];
  let below = selections;
  for (const key of keys) {
    nodes = fieldsByKey(below, fragments).get(key) ?? [];
    below = selectionsOf(nodes);
  }
  const after = nodes[0]?.arguments?.find(({ value }) => {
    const cursor: unknown = valueFromASTUntyped(value, { ...variables });
    return typeof cursor === 'string' && isGatewayCursor(cursor);
  });
  if (!after) return '';
  const name = nodes[0]!.name.value;
  return `The gateway adds: this \`${after.name.value}\` is a cursor of a connection, which does not fit into ${name}. Pass an endCursor of ${name} itself, or use the connection.`;
}
