import type { Path } from '../answers/errors.ts';
import type { FieldValue } from './all-field.ts';
import type { ConnectionField } from './connection-shape.ts';
import { errorsOfList } from './fetch-page.ts';
import type { OpenedList } from './list-field.ts';
import { writeRecord, writeRecords, type Output, type RecordPage } from './list-record.ts';
import { openConnection, type Edge, type OpenedConnection } from './open-connection.ts';

/** Reads a `…Connection` field. */
export async function readConnection(list: () => OpenedList, path: Path): Promise<FieldValue> {
  try {
    const connection = openConnection(list());
    if (connection.isTotalOnly) await connection.total();
    else await connection.finish();
    const output: Output = { parts: [], errors: connection.takeErrors(path), deferred: [] };
    const isThere = await writeConnection(connection, connection.shape.fields, output, path);
    return isThere ? output : { parts: undefined, errors: output.errors };
  } catch (error) {
    return { parts: undefined, errors: errorsOfList(error, path) };
  }
}

/**
 * Writes these fields of it as an object.
 *
 * @param given of edges and nodes: all of them unless stated
 * @returns false when a record is null that may not be
 */
export async function writeConnection(
  connection: OpenedConnection,
  fields: readonly ConnectionField[],
  output: Output,
  path: Path,
  given?: (key: string) => readonly Edge[],
): Promise<boolean> {
  const { parts, errors } = output;
  let open = '{';
  for (const field of fields) {
    const { key } = field;
    parts.push(`${open}${JSON.stringify(key)}:`);
    open = ',';
    switch (field.kind) {
      case 'edges':
      case 'nodes': {
        parts.push('[');
        const edges = given?.(key) ?? connection.edges;
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

/** @param at where the list is in the answer, and how many of its elements came before */
export function writeEdges(
  { cursorOf }: Pick<OpenedConnection, 'cursorOf'>,
  field: Extract<ConnectionField, { kind: 'edges' | 'nodes' }>,
  edges: readonly Edge[],
  output: Output,
  at: { readonly path: Path; readonly offset: number },
): boolean {
  if (field.kind === 'nodes') {
    const records = edges.map(({ record }) => record);
    return writeRecords(records, field.place, output, at);
  }
  const heads = field.fields.map(({ key }, i) => `${i > 0 ? ',' : ''}${JSON.stringify(key)}:`);
  // One byte a character: everything but the records is ASCII, and the bytes of records go through as they are.
  let text = '';
  let page: RecordPage | undefined;
  let pageText = '';
  for (let i = 0; i < edges.length; i += 1) {
    const { record, position } = edges[i]!;
    text += i > 0 ? ',{' : '{';
    for (let j = 0; j < heads.length; j += 1) {
      const one = field.fields[j]!;
      text += heads[j]!;
      if (one.kind === 'cursor') text += `"${cursorOf(position)}"`;
      else if (one.kind === 'typename') text += JSON.stringify(one.name);
      else if (record.page.kind === 'bytes') {
        if (page !== record.page) pageText = record.page.bytes.toString('latin1');
        page = record.page;
        const { at: ends, count } = record.page;
        const slot = 2 * (one.place * count + record.place);
        text += pageText.slice(ends[slot], ends[slot + 1]);
      } else {
        output.parts.push(Buffer.from(text, 'latin1'));
        text = '';
        if (!writeRecord(record, one.place, output, [...at.path, at.offset + i, one.key]))
          return false;
      }
    }
    text += '}';
  }
  if (text !== '') output.parts.push(Buffer.from(text, 'latin1'));
  return true;
}

async function pageInfo(
  connection: OpenedConnection,
  { fields }: Extract<ConnectionField, { kind: 'pageInfo' }>,
): Promise<string> {
  const end = await connection.finish();
  const { edges, cursorOf } = connection;
  const cursorAt = (edge: Edge | undefined) => (edge ? `"${cursorOf(edge.position)}"` : 'null');
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
