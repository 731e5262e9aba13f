import { setImmediate as nextTurn } from 'node:timers/promises';
import type { CollectedField, DeferUse } from '../../answers/collect-fields.ts';
import type { DeferredReading } from '../../answers/read.ts';
import type { Increment, Payload, PendingPart } from '../../answers/write-answer.ts';
import { inTurns } from '../../pausable.ts';
import type { Call } from '../call.ts';
import { streamedLists, type FieldStreams, type ListField } from '../lists/list-field.ts';
import { fillPlaceholders } from '../lists/nested-lists.ts';
import {
  Later,
  writeReading,
  type DeferredFields,
  type FieldValue,
  type Filled,
  type OperationAnswer,
  type Output,
  type StreamedList,
} from '../output.ts';

/** An operation that can be answered in parts. */
interface StreamedOperation {
  /** Its root fields. `list` is set for an `all…` or `…Connection` field. */
  readonly fields: readonly { readonly collected: CollectedField; readonly list?: ListField }[];
  /** Answers the root fields without `@defer`, or those of one `@defer`. */
  answer(
    call: Call,
    use: DeferUse | undefined,
    streams: OperationStreams,
  ): Promise<OperationAnswer>;
}

/** Returns how the lists of a root field are sent. */
export type OperationStreams = (field: ListField) => FieldStreams;

/** A payload of one source, and what begins when it is sent. */
interface Step extends Omit<Payload, 'hasNext'> {
  readonly sources?: readonly Steps[];
  readonly lists?: readonly Announced<StreamedList>[];
}

/** A source of payloads. It returns the last one. */
type Steps = AsyncGenerator<Step, Step, undefined>;

type Place = Pick<PendingPart, 'path' | 'label'>;

interface Announced<T> {
  readonly what: T;
  readonly part: PendingPart;
}

/**
 * Answers an operation in parts. The first payload has everything that is not deferred and the first records of
 * streamed lists. Then the streamed lists follow one after the other, a payload for each page, with the deferred parts
 * in between. The next payload is prepared when the one before was taken. If the first payload has no next one, it is
 * the whole answer.
 */
export async function* streamOperation(
  operation: StreamedOperation,
  call: Call,
): AsyncGenerator<Payload, void, undefined> {
  const opened: (() => Promise<unknown>)[] = [];
  const waiting: Announced<StreamedList>[] = [];
  const sources = new Sources();
  let isStreaming = false;
  let announced = 0;
  let hasFailed = false;
  const streams = new Map<ListField, FieldStreams>();
  // Of all fields, also of those that are deferred: a refusal is possible only before the first payload.
  for (const { list, collected } of operation.fields) {
    if (!list) continue;
    const lists = streamedLists(list, collected.nodes, call.variables);
    streams.set(list, { lists, onOpen: (end) => void opened.push(end) });
  }
  try {
    const first = await answerTogether(undefined);
    yield payloadOf({ first, ...(first.data && after(first, deferredAtRoot())) });
    for (let step = await sources.next(); step; step = await sources.next()) yield payloadOf(step);
  } catch (error) {
    hasFailed = true;
    throw error;
  } finally {
    const end = Promise.all([sources.end(), ...opened.map((close) => close())]);
    // After a failure, the caller does not wait for pages that are on their way to the others.
    if (hasFailed) end.catch(() => {});
    else await end;
  }

  function payloadOf({ sources: begun = [], lists = [], ...payload }: Step): Payload {
    for (const source of begun) sources.add(source);
    waiting.push(...lists);
    if (!isStreaming && waiting.length > 0) {
      isStreaming = true;
      sources.add(streamWaiting());
    }
    return { ...payload, hasNext: !sources.areOver };
  }

  /** Announces what comes after a part of the answer. */
  function after(
    { later = new Later() }: Pick<FieldValue, 'later'>,
    atRoot: readonly DeferredFields[] = [],
  ): Step {
    const parts = [...later.fields, ...atRoot].map(announceData);
    const readings = later.readings.map(announceData);
    const lists = later.lists.map((list) => announce(list, list.sent));
    return {
      pending: [...parts, ...readings, ...lists].map(({ part }) => part),
      sources: [...parts.map(stepOf), ...(readings.length > 0 ? [stepsOf(readings)] : [])],
      lists,
    };
  }

  function announceData<T extends Place>(what: T): Announced<T> {
    return announce(what, undefined);
  }

  function announce<T extends Place>(what: T, from: PendingPart['from']): Announced<T> {
    const { path, label } = what;
    return { what, part: { id: String(announced++), path, label, from } };
  }

  function deferredAtRoot(): readonly DeferredFields[] {
    const uses = new Set(operation.fields.flatMap(({ collected: { deferred } }) => deferred ?? []));
    return Array.from(uses, (use) => ({
      path: [],
      label: use.label,
      read: async () => {
        const { data, errors, later } = await answerTogether(use);
        return { parts: data ?? undefined, errors, later };
      },
    }));
  }

  function answerTogether(use: DeferUse | undefined): Promise<OperationAnswer> {
    return operation.answer(call, use, (list) => streams.get(list)!);
  }

  // oxlint-disable-next-line require-yield -- its only payload is the last, which a source returns
  async function* stepOf({ what, part }: Announced<DeferredFields>): Steps {
    const { parts, ...value } = await what.read().catch(refused);
    if (!parts) return { incremental: [{ of: part, parts, errors: value.errors }] };
    const filled = await fillPlaceholders(call, { parts, errors: value.errors });
    return { incremental: [{ of: part, ...filled }], ...after(value) };
  }

  async function* streamWaiting(): Steps {
    for (;;) {
      const last = yield* pagesOf(waiting.shift()!);
      if (waiting.length === 0) {
        isStreaming = false;
        return last;
      }
      yield last;
    }
  }

  async function* pagesOf({ what: list, part }: Announced<StreamedList>): Steps {
    for (;;) {
      const next = await list.next();
      if (!next) return { ended: [part] };
      const { parts, errors, later, count, extensions } = next;
      if (!parts) return { incremental: [{ of: part, index: list.sent, count, parts, errors }] };
      const filled = await fillPlaceholders(call, { parts, errors });
      const index = list.sent - count;
      const readings = later?.readings.map(announceData) ?? [];
      if (count > 0 || filled.errors.length > 0) {
        const pending = readings.map(({ part: announcedPart }) => announcedPart);
        yield { pending, incremental: [{ of: part, index, count, extensions, ...filled }] };
      }
      if (readings.length > 0) yield yield* stepsOf(readings);
    }
  }

  async function* stepsOf(readings: readonly Announced<DeferredReading>[]): Steps {
    const incremental: Increment[] = [];
    const further: Announced<DeferredReading>[] = [];
    for (const [count, { what, part }] of readings.entries()) {
      const { path } = what;
      if (count % READINGS_PER_TURN === READINGS_PER_TURN - 1) await nextTurn();
      const reading = await inTurns(what.read(), call.signal);
      const output: Output = { parts: [], errors: [], later: new Later() };
      const isWritten = writeReading(reading, output, path);
      const { parts, errors } = await fillPlaceholders(call, output);
      incremental.push({ of: part, parts: isWritten ? membersOf(parts) : undefined, errors });
      for (const below of output.later!.readings) further.push(announceData(below));
    }
    const step = { pending: further.map(({ part }) => part), incremental };
    if (further.length === 0) return step;
    yield step;
    return yield* stepsOf(further);
  }
}

/** Makes a null of a deferred part that is refused: the parts before it were sent already. */
function refused(error: unknown): FieldValue {
  return { parts: undefined, errors: [{ thrown: error, path: undefined }] };
}

/** Removes the braces of an object, which are written with the payload that it is sent in. */
function membersOf(parts: Filled['parts']): Filled['parts'] {
  const members = [...parts];
  members[0] = members[0]!.slice(1);
  members.push(members.pop()!.slice(0, -1));
  return members;
}

/** Reading one takes some microseconds, and a list may have 100,000 of them. */
const READINGS_PER_TURN = 500;

/** Several sources, read as one. A source continues once its last payload was taken. */
class Sources {
  /** With the next payload of each, from when it is requested until it is taken. */
  readonly #next = new Map<Steps, Promise<Next> | undefined>();

  add(source: Steps): void {
    this.#next.set(source, undefined);
  }

  get areOver(): boolean {
    return this.#next.size === 0;
  }

  /** Returns the next payload of whichever source has one first; undefined at the end. */
  async next(): Promise<Step | undefined> {
    if (this.areOver) return undefined;
    const racing = Array.from(this.#next, ([source, next = nextOf(source)]) => {
      this.#next.set(source, next);
      return next;
    });
    const { source, result } = await Promise.race(racing);
    if (result.done) this.#next.delete(source);
    else this.#next.set(source, undefined);
    return result.value;
  }

  async end(): Promise<void> {
    await Promise.all(Array.from(this.#next.keys(), (source) => source.return({})));
  }
}

interface Next {
  readonly source: Steps;
  readonly result: IteratorResult<Step, Step>;
}

function nextOf(source: Steps): Promise<Next> {
  const next = source.next().then((result) => ({ source, result }));
  // It may fail when the answer is no longer read.
  next.catch(() => {});
  return next;
}
