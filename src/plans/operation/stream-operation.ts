import type { DeferUse } from '../../answers/collect-fields.ts';
import type { DeferredReading } from '../../answers/read.ts';
import type { Increment, Payload } from '../../answers/write-answer.ts';
import type { Call } from '../call.ts';
import { fillPlaceholders } from '../lists/nested-lists.ts';
import {
  openStreamedField,
  type DeferredPart,
  type OpenedStreams,
  type PartAnswer,
} from '../lists/streamed-field.ts';
import type { StreamedList } from '../lists/streamed-list.ts';
import type { FieldValue, Output } from '../output.ts';
import type { GivenValues, RootField, Variant } from './variant.ts';

type Increments = AsyncGenerator<readonly Increment[], void, undefined>;

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
  const waiting: StreamedList[] = [];
  const sources = mergeSources<readonly Increment[]>();
  let isStreaming = false;
  let added = 0;
  try {
    const first = await answerTogether(undefined);
    follow(first);
    for (const use of usesOf(variant.fields)) {
      add(incrementOf({ path: [], label: use.label, read: () => answerTogether(use) }));
    }
    const hasNext = added > 0;
    yield {
      first: { parts: first.data, errors: first.errors, extensions: first.extensions },
      hasNext,
    };
    if (!hasNext) return;
    for (;;) {
      const incremental = await sources.next();
      if (!incremental) break;
      yield { incremental, hasNext: true };
    }
    yield { hasNext: false };
  } finally {
    await Promise.all([sources.end(), ...opened.map((streams) => streams.end())]);
  }

  function add(source: Increments): void {
    added += 1;
    sources.add(source);
  }

  /** Adds what comes after a part of the answer. */
  function follow({ deferred, streams = [], deferredParts = [] }: PartAnswer): void {
    for (const part of deferredParts) add(incrementOf(part));
    if (deferred.length > 0) add(incrementsOf(deferred));
    waiting.push(...streams);
    if (isStreaming || waiting.length === 0) return;
    isStreaming = true;
    add(streamWaiting());
  }

  async function answerTogether(use: DeferUse | undefined): Promise<PartAnswer> {
    const own: OpenedStreams[] = [];
    const given = new Map<RootField, Promise<FieldValue>>();
    for (const field of variant.fields) {
      if (field.kind !== 'list' || field.collected.deferred !== use) continue;
      const streams = openStreamedField(field.list, call, field.collected.nodes);
      if (!streams) continue;
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

  async function* incrementOf({ path, label, read }: DeferredPart): Increments {
    const answer = await read();
    yield [{ kind: 'data', path, label, parts: answer.data, errors: answer.errors }];
    follow(answer);
  }

  async function* streamWaiting(): Increments {
    for (let list = waiting.shift(); list; list = waiting.shift()) yield* itemsOf(list);
    isStreaming = false;
  }

  async function* itemsOf(list: StreamedList): Increments {
    const { path, label } = list;
    for (;;) {
      const next = await list.next();
      if (!next) return;
      const { count, isNull, extensions } = next;
      const at = [...path, list.sent - count];
      const { parts, errors, deferred = [] } = await fillPlaceholders(call, next);
      if (count > 0 || errors.length > 0) {
        yield [
          {
            kind: 'items',
            path: at,
            label,
            parts: isNull ? undefined : (parts as (string | Buffer)[]),
            errors,
            extensions,
          },
        ];
      }
      if (isNull) return;
      if (deferred.length > 0) yield* incrementsOf(deferred);
    }
  }

  async function* incrementsOf(readings: readonly DeferredReading[]): Increments {
    const increments: Increment[] = [];
    const further: DeferredReading[] = [];
    for (const { path, label, read } of readings) {
      const reading = read();
      const errors = reading.errors.map((error) => ({
        ...error,
        path: [...path, ...(error.path ?? [])],
      }));
      const output: Output = { parts: [...(reading.parts ?? [])], errors };
      for (const [i, part] of output.parts.entries()) {
        if (typeof part !== 'string' && 'shape' in part)
          output.parts[i] = { ...part, path: [...path, ...part.path] };
      }
      const whole = await fillPlaceholders(call, output);
      const parts = reading.parts && membersOf(whole.parts as (string | Buffer)[]);
      increments.push({ kind: 'data', path, label, parts, errors: whole.errors });
      further.push(...reading.deferred.map((one) => ({ ...one, path: [...path, ...one.path] })));
    }
    yield increments;
    if (further.length > 0) yield* incrementsOf(further);
  }
}

/** Removes the braces, which are written with every payload. */
function membersOf(parts: readonly (string | Buffer)[]): readonly (string | Buffer)[] {
  const text = parts.map((part) => part.toString()).join('');
  return [text.slice(1, -1)];
}

function usesOf(fields: readonly RootField[]): Set<DeferUse> {
  return new Set(fields.flatMap(({ collected: { deferred } }) => deferred ?? []));
}

/** Several sources, read as one. */
interface MergedSources<T> {
  add(source: AsyncGenerator<T, void, undefined>): void;
  /** Returns what comes first from any source; undefined at the end. A source goes on when its last value was taken. */
  next(): Promise<T | undefined>;
  end(): Promise<void>;
}

function mergeSources<T>(): MergedSources<T> {
  type Source = AsyncGenerator<T, void, undefined>;
  type Next = { source: Source; result: IteratorResult<T, void> };
  const sources = new Set<Source>();
  const pending = new Map<Source, Promise<Next>>();

  return {
    add: (source) => void sources.add(source),
    next: async () => {
      while (sources.size > 0) {
        for (const source of sources) if (!pending.has(source)) pending.set(source, nextOf(source));
        const { source, result } = await Promise.race(pending.values());
        pending.delete(source);
        if (!result.done) return result.value;
        sources.delete(source);
      }
      return undefined;
    },
    end: async () => {
      await Promise.all([...sources].map((source) => source.return()));
    },
  };

  function nextOf(source: Source): Promise<Next> {
    const next = source.next().then((result) => ({ source, result }));
    // It may fail when nobody reads on.
    next.catch(() => {});
    return next;
  }
}
