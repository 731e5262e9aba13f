import type { FieldNode } from 'graphql';
import type { AnswerError, Path } from '../../answers/answer-errors.ts';
import type { DeferredReading } from '../../answers/reading.ts';
import { codedError } from '../../errors.ts';
import { CursorEncoder } from '../../paging/cursor.ts';
import { positionOf } from '../../paging/walk.ts';
import { streamAt, type StreamArguments } from '../../schema/incremental-directives.ts';
import type { Call, CallVariables } from '../call.ts';
import {
  membersOf,
  writeRecords,
  type FieldValue,
  type ListRecord,
  type OperationAnswer,
  type Output,
} from '../output.ts';
import { errorsOfList } from '../pages/fetch-page.ts';
import { drainedPages } from './all-field.ts';
import { writeConnection, writeEdges } from './connection-field.ts';
import type { ConnectionField } from './connection-shape.ts';
import { openList, type ListField, type OpenedList } from './list-field.ts';
import { fillPlaceholders } from './nested-lists.ts';
import {
  openListConnection,
  type ConnectionEdge,
  type OpenedConnection,
} from './opened-connection.ts';
import { createStreamedList, type PartSource, type StreamedList } from './streamed-list.ts';

/** The lists of one root field that are streamed, and its deferred parts. */
export interface OpenedStreams {
  /** The field with the first elements of its lists. */
  readonly value: Promise<FieldValue>;
  /** The lists whose first elements are in `value`. Available after `value`. */
  begun(): readonly StreamedList[];
  /** What `@defer` puts off of a connection. Available after `value`. */
  deferred(): readonly DeferredPart[];
  end(): Promise<void>;
}

/** A part of the answer that `@defer` puts off. */
export interface DeferredPart {
  readonly path: Path;
  readonly label: string | undefined;
  read(): Promise<PartAnswer>;
}

export interface PartAnswer extends OperationAnswer {
  /** Lists whose first elements are in this part. */
  readonly streams?: readonly StreamedList[];
  /** What `@defer` puts off of this part. */
  readonly deferredParts?: readonly DeferredPart[];
}

/** What of a root field is sent in parts, with the values of one call. */
export interface FieldStreams {
  readonly field: ListField;
  /** By the keys of lists: of `edges` and `nodes`, or of the field itself. */
  readonly lists: ReadonlyMap<string, StreamArguments>;
}

/**
 * Returns undefined for a field without `@stream` and `@defer`.
 *
 * @throws BAD_USER_INPUT if a list is selected at several places and streamed in different ways
 */
export function streamsOf(
  field: ListField,
  nodes: readonly FieldNode[],
  { values }: CallVariables,
): FieldStreams | undefined {
  const lists = new Map<string, StreamArguments>();
  let isDeferred = false;
  const add = (path: readonly string[], of: readonly FieldNode[]) => {
    const stream = agreed(path, of, values);
    if (stream) lists.set(path.at(-1)!, stream);
  };
  if (!field.connection) add([field.key], nodes);
  for (const one of field.connection?.fields ?? []) {
    isDeferred ||= one.deferred !== undefined;
    if (one.kind === 'edges' || one.kind === 'nodes') add([field.key, one.key], one.nodes);
  }
  return lists.size > 0 || isDeferred ? { field, lists } : undefined;
}

export function openStreamedField({ field, lists }: FieldStreams, call: Call): OpenedStreams {
  return field.connection
    ? openStreamedConnection(field, call, lists)
    : openStreamedAll(field, call, lists.get(field.key)!);
}

function openStreamedAll(field: ListField, call: Call, stream: StreamArguments): OpenedStreams {
  const path = [field.key];
  let source: PartSource<ListRecord> | undefined;
  let extensions: (() => string) | undefined;
  const unplacedErrors: AnswerError[] = [];
  const list = createStreamedList<ListRecord>(path, stream, {
    parts: () => (source = recordsOf(openList(field, call))),
    write: (records, offset, output) => {
      output.errors.push(...unplacedErrors.splice(0));
      return writeRecords(records, 0, output, { path, offset });
    },
    extensions: () => extensions?.(),
  });
  const begun: StreamedList[] = [];
  const value = list.begin().then(
    ({ output, isNull }): FieldValue => {
      if (isNull) return { parts: undefined, errors: output.errors };
      begun.push(list);
      return { ...output, parts: ['[', ...output.parts, ']'] };
    },
    (error: unknown): FieldValue => ({ parts: undefined, errors: errorsOfList(error, path) }),
  );
  return {
    value,
    begun: () => begun,
    deferred: () => [],
    end: async () => {
      await source?.return();
    },
  };

  async function* recordsOf(opened: OpenedList): PartSource<ListRecord> {
    const { keys } = opened;
    const cursors = new CursorEncoder(keys.cursors);
    const { counts } = field.parts.drains;
    const listLength = field.parts.drains.lengthOf(keys.walk);
    for await (const { page, records: given, unplacedErrors: unplaced } of drainedPages(
      opened,
      'parts',
    )) {
      const records = given.list;
      for (const error of unplaced as readonly AnswerError[])
        unplacedErrors.push({ ...error, path });
      const last = records.at(-1);
      // A stream whose connection breaks has no last payload with an error, and can be continued all the same.
      if (last) {
        extensions = () =>
          JSON.stringify({
            resumeAfter: cursors.encode(positionOf(page, last)),
            listLength,
            counted: counts.isBelieved(keys.walk) ? page.total : undefined,
          });
      }
      yield records;
    }
  }
}

function openStreamedConnection(
  field: ListField,
  call: Call,
  streams: ReadonlyMap<string, StreamArguments>,
): OpenedStreams {
  const path = [field.key];
  const shape = field.connection!;
  let connection: OpenedConnection | undefined;
  const sources: PartSource<ConnectionEdge>[] = [];
  const begun: StreamedList[] = [];
  const deferredParts: DeferredPart[] = [];

  /** Writes these fields of the connection; of streamed lists, only the first elements. */
  const write = async (
    of: OpenedConnection,
    fields: readonly ConnectionField[],
    output: Output,
  ) => {
    const beginnings = new Map<string, readonly ConnectionEdge[]>();
    const started: StreamedList[] = [];
    for (const one of fields) {
      const stream = streams.get(one.key);
      if (!stream || (one.kind !== 'edges' && one.kind !== 'nodes')) continue;
      const at = [...path, one.key];
      const list = createStreamedList<ConnectionEdge>(at, stream, {
        parts: () => {
          const source = of.parts();
          sources.push(source);
          return source;
        },
        write: (edges, offset, into) => {
          into.errors.push(...of.takeErrors(path));
          return writeEdges(of, one, edges, into, { path: at, offset });
        },
      });
      beginnings.set(one.key, await list.take());
      started.push(list);
    }
    const rest = fields.some(
      ({ key, kind }) => !streams.has(key) && (kind === 'edges' || kind === 'nodes'),
    );
    if (rest) await of.finish();
    output.errors.push(...of.takeErrors(path));
    const isThere = await writeConnection(
      of,
      fields,
      output,
      path,
      (key) => beginnings.get(key) ?? of.edges(),
    );
    return { isThere, started };
  };

  const value = (async (): Promise<FieldValue> => {
    const output: Output = { parts: [], errors: [], deferred: [] };
    try {
      const opened = openListConnection(openList(field, call));
      connection = opened;
      if (streams.size > 0) await opened.begin();
      else if (!opened.isTotalOnly) await opened.finish();
      const now = shape.fields.filter(({ deferred }) => !deferred);
      const { isThere, started } = await write(opened, now, output);
      if (!isThere) return { parts: undefined, errors: output.errors };
      begun.push(...started);
      for (const [use, fields] of Map.groupBy(shape.fields, ({ deferred }) => deferred)) {
        if (!use) continue;
        deferredParts.push({ path, label: use.label, read: () => readPart(opened, fields) });
      }
      return output;
    } catch (error) {
      return { parts: undefined, errors: [...output.errors, ...errorsOfList(error, path)] };
    }
  })();

  async function readPart(
    opened: OpenedConnection,
    fields: readonly ConnectionField[],
  ): Promise<PartAnswer> {
    const deferred: DeferredReading[] = [];
    const output: Output = { parts: [], errors: [], deferred };
    const nothing = { data: undefined, extensions: undefined, deferred };
    try {
      const { isThere, started } = await write(opened, fields, output);
      if (!isThere) return { ...nothing, errors: output.errors };
      const { parts, errors } = await fillPlaceholders(call, output);
      return { ...nothing, data: membersOf(parts), errors, streams: started };
    } catch (error) {
      return { ...nothing, errors: [...output.errors, ...errorsOfList(error, path)] };
    }
  }

  return {
    value,
    begun: () => begun,
    deferred: () => deferredParts,
    end: async () => {
      await Promise.all(sources.map((source) => source.return()));
      await connection?.close();
    },
  };
}

/** Returns how all these nodes stream the list. @throws BAD_USER_INPUT */
function agreed(
  path: Path,
  nodes: readonly FieldNode[],
  variables: Readonly<Record<string, unknown>>,
): StreamArguments | undefined {
  const [stream, ...others] = nodes.map((node) => streamAt(node, variables));
  const isSame = (other: StreamArguments | undefined) =>
    other?.initialCount === stream?.initialCount && other?.label === stream?.label;
  if (others.every(isSame)) return stream;
  throw codedError(
    'BAD_USER_INPUT',
    `The operation selects ${path.join('.')} at several places: stream it at each of them, with the same initialCount and no label, or give it another alias.`,
  );
}
