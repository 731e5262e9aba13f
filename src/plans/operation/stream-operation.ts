import type { DeferUse } from '../../answers/collect-fields.ts';
import type { DeferredReading } from '../../answers/reading.ts';
import type { Increment, Payload, PendingPart } from '../../answers/write-answer.ts';
import { inTurns, nextTurn } from '../../pausable.ts';
import type { Call } from '../call.ts';
import { fillPlaceholders } from '../lists/nested-lists.ts';
import {
  openStreamedField,
  streamsOf,
  type DeferredPart,
  type OpenedStreams,
  type PartAnswer,
} from '../lists/streamed-field.ts';
import type { StreamedList } from '../lists/streamed-list.ts';
import { isPlaceholder, membersOf, type FieldValue, type Output } from '../output.ts';
import type { GivenValues, RootField, Variant } from './variant.ts';

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
  variant: Variant,
  call: Call,
): AsyncGenerator<Payload, void, undefined> {
  const opened: OpenedStreams[] = [];
  const waiting: Announced<StreamedList>[] = [];
  const sources = mergeSources<Step>();
  let isStreaming = false;
  let announced = 0;
  let hasFailed = false;
  // Of all fields, also of those that are deferred: a refusal is possible only before the first payload.
  const streamed = new Map(
    variant.fields.map((field) => [
      field,
      field.kind === 'list'
        ? streamsOf(field.list, field.collected.nodes, call.variables)
        : undefined,
    ]),
  );
  try {
    const first = await answerTogether(undefined);
    const deferredParts = [...(first.deferredParts ?? []), ...deferredAtRoot()];
    yield payloadOf({ first, ...after({ ...first, deferredParts }) });
    for (let step = await sources.next(); step; step = await sources.next()) yield payloadOf(step);
  } catch (error) {
    hasFailed = true;
    throw error;
  } finally {
    const end = Promise.all([sources.end(), ...opened.map((streams) => streams.end())]);
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
    return { ...payload, hasNext: sources.size() > 0 };
  }

  /** Announces what comes after a part of the answer. */
  function after({ data, deferred, streams = [], deferredParts = [] }: PartAnswer): Step {
    if (!data) return {};
    const parts = deferredParts.map(announceData);
    const readings = deferred.map(announceData);
    const lists = streams.map((list) => announce(list, list.sent()));
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

  function deferredAtRoot(): readonly DeferredPart[] {
    const uses = new Set(variant.fields.flatMap(({ collected: { deferred } }) => deferred ?? []));
    return Array.from(uses, (use) => ({
      path: [],
      label: use.label,
      read: () => answerTogether(use),
    }));
  }

  async function answerTogether(use: DeferUse | undefined): Promise<PartAnswer> {
    const own: OpenedStreams[] = [];
    const given = new Map<RootField, Promise<FieldValue>>();
    for (const [field, its] of streamed) {
      if (!its || field.collected.deferred !== use) continue;
      const streams = openStreamedField(its, call);
      own.push(streams);
      opened.push(streams);
      given.set(field, streams.value);
    }
    const answer = await variant.answer(call, use, given satisfies GivenValues);
    return {
      ...answer,
      streams: own.flatMap((streams) => streams.begun()),
      deferredParts: own.flatMap((streams) => streams.deferred()),
    };
  }

  // oxlint-disable-next-line require-yield -- its only payload is the last, which a source returns
  async function* stepOf({ what, part }: Announced<DeferredPart>): Steps {
    const answer = await what.read().catch(refused);
    const increment = { of: part, parts: answer.data ?? undefined, errors: answer.errors };
    return { incremental: [increment], ...after(answer) };
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
      const { count, isNull, extensions } = next;
      const index = list.sent() - count;
      const { parts: all, errors, deferred = [] } = await fillPlaceholders(call, next);
      const parts = isNull ? undefined : all;
      const incremental = [{ of: part, index, count, parts, errors, extensions }];
      if (isNull) return { incremental };
      const readings = deferred.map(announceData);
      if (count > 0 || errors.length > 0) {
        yield { pending: readings.map(({ part: one }) => one), incremental };
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
      const errors = reading.errors.map((error) => ({
        ...error,
        path: [...path, ...(error.path ?? [])],
      }));
      const output: Output = { parts: [...(reading.parts ?? [])], errors };
      for (const [i, one] of output.parts.entries()) {
        if (isPlaceholder(one)) output.parts[i] = { ...one, path: [...path, ...one.path] };
      }
      const whole = await fillPlaceholders(call, output);
      const parts = reading.parts && membersOf(whole.parts);
      incremental.push({ of: part, parts, errors: whole.errors });
      for (const one of reading.deferred) {
        further.push(announceData({ ...one, path: [...path, ...one.path] }));
      }
    }
    const step = { pending: further.map(({ part }) => part), incremental };
    if (further.length === 0) return step;
    yield step;
    return yield* stepsOf(further);
  }
}

/** A part whose operation would have been refused, had it not been deferred: the parts before it were sent already. */
function refused(error: unknown): PartAnswer {
  const errors = [{ thrown: error, path: undefined }];
  return { data: undefined, errors, extensions: undefined, deferred: [] };
}

/** Each takes some microseconds, and a list may have a hundred thousand. */
const READINGS_PER_TURN = 500;

/** Several sources, read as one. */
interface MergedSources<T> {
  add(source: AsyncGenerator<T, T, undefined>): void;
  /** The number of sources that have not returned. */
  size(): number;
  /**
   * Returns the next value of whichever source has one first; undefined at the end. A source continues once its last
   * value was taken.
   */
  next(): Promise<T | undefined>;
  end(): Promise<void>;
}

function mergeSources<T>(): MergedSources<T> {
  type Source = AsyncGenerator<T, T, undefined>;
  type Next = { source: Source; result: IteratorResult<T, T> };
  const sources = new Set<Source>();
  const pending = new Map<Source, Promise<Next>>();

  return {
    add: (source) => void sources.add(source),
    size: () => sources.size,
    next: async () => {
      if (sources.size === 0) return undefined;
      for (const source of sources) if (!pending.has(source)) pending.set(source, nextOf(source));
      const { source, result } = await Promise.race(pending.values());
      pending.delete(source);
      if (result.done) sources.delete(source);
      return result.value;
    },
    end: async () => {
      await Promise.all([...sources].map((source) => source.return(undefined as T)));
    },
  };

  function nextOf(source: Source): Promise<Next> {
    const next = source.next().then((result) => ({ source, result }));
    // It may fail when nobody reads further.
    next.catch(() => {});
    return next;
  }
}
