import type { DeferUse } from '../../answers/collect-fields.ts';
import type { Path } from '../../answers/errors.ts';
import type { DeferredReading } from '../../answers/read.ts';
import type { Increment, Payload } from '../../answers/write-payload.ts';
import type { Call } from '../call.ts';
import { fillHoles } from '../lists/nested-lists.ts';
import { openStreamedField, type OpenedStreams } from '../lists/streamed-field.ts';
import type { StreamedList } from '../lists/streamed-list.ts';
import type { FieldValue, OperationAnswer, Output } from '../output.ts';
import type { GivenValues, RootField, Variant } from './variant.ts';

/** What is put off: written when its turn has come. */
interface Later {
  readonly path: Path;
  readonly label: string | undefined;
  give(): Promise<
    OperationAnswer & {
      readonly streams?: readonly StreamedList[];
      readonly later?: readonly Later[];
    }
  >;
}

type Increments = AsyncGenerator<readonly Increment[], void, undefined>;

/**
 * Answers an operation in parts: at first everything that is not put off, and the first records of streamed lists;
 * then those lists one after the other, a payload for each page, and among them what is put off. The next page is
 * read when the payload before it was taken. A first payload without a next one is a whole answer.
 */
export async function* streamOperation(
  variant: Variant,
  call: Call,
): AsyncGenerator<Payload, void, undefined> {
  const opened: OpenedStreams[] = [];
  const waiting: StreamedList[] = [];
  const merge = createMerge<readonly Increment[]>();
  let isStreaming = false;
  let going = 0;
  try {
    const first = await answerTogether(undefined);
    begin(first);
    for (const use of usesOf(variant.fields)) {
      add(later({ path: [], label: use.label, give: () => answerTogether(use) }));
    }
    const hasNext = going > 0;
    yield {
      first: { parts: first.data, errors: first.errors, extensions: first.extensions },
      hasNext,
    };
    if (!hasNext) return;
    for (;;) {
      const incremental = await merge.next();
      if (!incremental) break;
      yield { incremental, hasNext: true };
    }
    yield { hasNext: false };
  } finally {
    await Promise.all([merge.end(), ...opened.map((streams) => streams.end())]);
  }

  function add(source: Increments): void {
    going += 1;
    merge.add(source);
  }

  function begin({
    deferred,
    streams = [],
    later: further = [],
  }: Awaited<ReturnType<Later['give']>>): void {
    for (const one of further) add(later(one));
    if (deferred.length > 0) add(deferredOf(deferred));
    waiting.push(...streams);
    if (isStreaming || waiting.length === 0) return;
    isStreaming = true;
    add(oneAfterTheOther());
  }

  async function answerTogether(use: DeferUse | undefined) {
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
      later: own.flatMap((streams) => streams.later()),
    };
  }

  async function* later(one: Later): Increments {
    const given = await one.give();
    const { path, label } = one;
    yield [{ kind: 'data', path, label, parts: given.data, errors: given.errors }];
    begin(given);
  }

  async function* oneAfterTheOther(): Increments {
    for (let list = waiting.shift(); list; list = waiting.shift()) yield* itemsOf(list);
    isStreaming = false;
  }

  async function* itemsOf(list: StreamedList): Increments {
    const { path, label } = list;
    for (;;) {
      const next = await list.next();
      if (!next) return;
      const { count, isNull } = next;
      const at = [...path, list.sent - count];
      const { parts, errors, deferred = [] } = await fillHoles(call, next);
      if (count > 0 || errors.length > 0) {
        yield [
          {
            kind: 'items',
            path: at,
            label,
            parts: isNull ? undefined : (parts as (string | Buffer)[]),
            errors,
          },
        ];
      }
      if (isNull) return;
      if (deferred.length > 0) yield* deferredOf(deferred);
    }
  }

  async function* deferredOf(some: readonly DeferredReading[]): Increments {
    const increments: Increment[] = [];
    const further: DeferredReading[] = [];
    for (const { path, label, read } of some) {
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
      const whole = await fillHoles(call, output);
      const parts = reading.parts && membersOf(whole.parts as (string | Buffer)[]);
      increments.push({ kind: 'data', path, label, parts, errors: whole.errors });
      further.push(...reading.deferred.map((one) => ({ ...one, path: [...path, ...one.path] })));
    }
    yield increments;
    if (further.length > 0) yield* deferredOf(further);
  }
}

/** Without the braces around them: those are written with every payload. */
function membersOf(parts: readonly (string | Buffer)[]): readonly (string | Buffer)[] {
  const text = parts.map((part) => part.toString()).join('');
  return [text.slice(1, -1)];
}

function usesOf(fields: readonly RootField[]): Set<DeferUse> {
  return new Set(fields.flatMap(({ collected: { deferred } }) => deferred ?? []));
}

/** Several sources, read as one. */
export interface Merge<T> {
  add(source: AsyncGenerator<T, void, undefined>): void;
  /** What comes first; undefined when all have ended. A source goes on when its last one was taken. */
  next(): Promise<T | undefined>;
  end(): Promise<void>;
}

export function createMerge<T>(): Merge<T> {
  type Source = AsyncGenerator<T, void, undefined>;
  type Came = { source: Source; result: IteratorResult<T, void> };
  const sources = new Set<Source>();
  const asked = new Map<Source, Promise<Came>>();

  return {
    add: (source) => void sources.add(source),
    next: async () => {
      while (sources.size > 0) {
        for (const source of sources) if (!asked.has(source)) asked.set(source, ask(source));
        const { source, result } = await Promise.race(asked.values());
        asked.delete(source);
        if (!result.done) return result.value;
        sources.delete(source);
      }
      return undefined;
    },
    end: async () => {
      await Promise.all([...sources].map((source) => source.return()));
    },
  };

  function ask(source: Source): Promise<Came> {
    const came = source.next().then((result) => ({ source, result }));
    // It may fail when nobody reads on.
    came.catch(() => {});
    return came;
  }
}
