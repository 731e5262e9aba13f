import type { Path } from '../../answers/answer-errors.ts';
import type { CursorEncoder, PageBounds, PlacedRecord } from '../../paging/cursor.ts';
import { positionOf } from '../../paging/walk.ts';
import { writeRecord, writeRecords, type FieldValue, type Output } from '../output.ts';
import { errorsOfList, NullList } from '../pages/fetch-page.ts';
import type { ConnectionField } from './connection-shape.ts';
import type { OpenedList } from './list-field.ts';
import {
  openListConnection,
  type ConnectionEdge,
  type OpenedConnection,
} from './opened-connection.ts';

/** Reads a `…Connection` field. */
export async function readConnection(list: () => OpenedList, path: Path): Promise<FieldValue> {
  try {
    const connection = openListConnection(list());
    if (!connection.isTotalOnly) await connection.finish();
    const output: Output = { parts: [], errors: connection.takeErrors(path), deferred: [] };
    const isThere = await writeConnection(connection, connection.shape.fields, output, path);
    return isThere ? output : { parts: undefined, errors: output.errors };
  } catch (error) {
    return { parts: undefined, errors: errorsOfList(error, path) };
  }
}

/**
 * Writes these fields of a connection as an object.
 *
 * @param given the edges to write for a key; default: all that were read
 * @returns false when a record is null that must not be
 */
export async function writeConnection(
  connection: OpenedConnection,
  fields: readonly ConnectionField[],
  output: Output,
  path: Path,
  given?: (key: string) => readonly ConnectionEdge[],
): Promise<boolean> {
  const { parts, errors } = output;
  let open = '{';
  for (const field of fields) {
    const { key } = field;
    parts.push(`${open}${JSON.stringify(key)}:`);
    open = ',';
    if ('refusal' in field && field.refusal) {
      errors.push({ thrown: field.refusal, path: [...path, key] });
      return false;
    }
    switch (field.kind) {
      case 'edges':
      case 'nodes': {
        parts.push('[');
        const edges = given?.(key) ?? connection.edges();
        const at = { path: [...path, key], offset: 0 };
        if (!writeEdges(connection, field, edges, output, at)) return false;
        parts.push(']');
        break;
      }
      case 'pageInfo':
        parts.push(await pageInfo(connection, field));
        errors.push(...connection.takeErrors(path));
        break;
      case 'totalCount':
        try {
          parts.push(String(await connection.total()));
        } catch (error) {
          if (error instanceof NullList) throw error;
          errors.push(...errorsOfList(error, [...path, key]));
          parts.push('null');
        }
        break;
      case 'typename':
        parts.push(JSON.stringify(field.name));
    }
  }
  parts.push(open === '{' ? '{}' : '}');
  return true;
}

/** @param at the path of the list, and how many of its elements were written before */
export function writeEdges(
  { cursors }: Pick<OpenedConnection, 'cursors'>,
  field: Extract<ConnectionField, { kind: 'edges' | 'nodes' }>,
  edges: readonly ConnectionEdge[],
  output: Output,
  at: { readonly path: Path; readonly offset: number },
): boolean {
  if (field.kind === 'nodes') {
    const records = edges.map(({ record }) => record);
    return writeRecords(records, field.selection, output, at);
  }
  if (field.refusedEdge && edges.length > 0) {
    output.errors.push({ thrown: field.refusedEdge, path: [...at.path, at.offset] });
    return false;
  }
  let written = new EdgeBytes(edges.length * BYTES_OF_EDGE);
  for (let i = 0; i < edges.length; i += 1) {
    const { record, page: bounds } = edges[i]!;
    if (i > 0) written.byte(COMMA);
    // The head of the first field has it, but @skip and @include can leave an edge without fields.
    if (field.fields.length === 0) written.byte(OPENING_BRACE);
    for (const one of field.fields) {
      const { page, index } = record;
      written.bytes(one.head, 0, one.head.length);
      if (one.kind === 'typename') continue;
      if (one.kind === 'cursor') written.cursor(cursors, bounds, record);
      else if (page.kind === 'bytes') {
        const { selection } = one;
        written.bytes(page.bytes, page.startOf(selection, index), page.endOf(selection, index));
      } else {
        output.parts.push(written.taken());
        written = new EdgeBytes(BYTES_OF_EDGE);
        if (!writeRecord(record, one.selection, output, [...at.path, at.offset + i, one.key]))
          return false;
      }
    }
    written.byte(CLOSING_BRACE);
  }
  if (edges.length > 0) output.parts.push(written.taken());
  return true;
}

/** The expected size of an edge with a cursor; larger edges make the buffer grow. */
const BYTES_OF_EDGE = 256;
const [COMMA, QUOTE, OPENING_BRACE, CLOSING_BRACE] = [44, 34, 123, 125];
/** So few bytes are written sooner than a copy is begun. */
const SHORT = 24;

/** Writes edges into one buffer: a separate piece for each value would cost more than the value. */
class EdgeBytes {
  #into: Buffer;
  #end = 0;

  constructor(expected: number) {
    this.#into = Buffer.allocUnsafe(expected);
  }

  byte(byte: number): void {
    this.#makeRoom(1);
    this.#into[this.#end++] = byte;
  }

  bytes(from: Buffer, start: number, end: number): void {
    this.#makeRoom(end - start);
    if (end - start > SHORT) {
      this.#end += from.copy(this.#into, this.#end, start, end);
      return;
    }
    for (let at = start; at < end; at += 1) this.#into[this.#end++] = from[at]!;
  }

  cursor(cursors: CursorEncoder, page: PageBounds, record: PlacedRecord): void {
    this.#makeRoom(cursors.prepare(page, record) + 2);
    this.#into[this.#end] = QUOTE;
    this.#end = cursors.write(this.#into, this.#end + 1);
    this.#into[this.#end++] = QUOTE;
  }

  taken(): Buffer {
    return this.#into.subarray(0, this.#end);
  }

  #makeRoom(wanted: number): void {
    if (this.#into.length - this.#end >= wanted) return;
    const larger = Buffer.allocUnsafe(2 * (this.#end + wanted));
    this.#into.copy(larger, 0, 0, this.#end);
    this.#into = larger;
  }
}

async function pageInfo(
  connection: OpenedConnection,
  { fields }: Extract<ConnectionField, { kind: 'pageInfo' }>,
): Promise<string> {
  const end = await connection.finish();
  const { cursors } = connection;
  const edges = connection.edges();
  const cursorAt = (edge: ConnectionEdge | undefined) =>
    edge ? `"${cursors.encode(positionOf(edge.page, edge.record))}"` : 'null';
  const members = fields.map((field) => {
    const key = JSON.stringify(field.key);
    switch (field.kind) {
      case 'hasNextPage':
      case 'hasPreviousPage':
        return `${key}:${String(end[field.kind])}`;
      case 'startCursor':
        return `${key}:${cursorAt(edges[0])}`;
      case 'endCursor':
        return `${key}:${cursorAt(edges.at(-1))}`;
      case 'typename':
        return `${key}:${JSON.stringify(field.name)}`;
    }
  });
  return `{${members.join(',')}}`;
}
