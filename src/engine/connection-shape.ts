import type { SelectionNode } from 'graphql';
import type { Place } from '../paging/page.ts';
import type { Fragments } from '../selections.ts';
import type { AnswerError, Path } from './answer.ts';
import type { PageRecords } from './page-records.ts';
import {
  fieldsBelow,
  selectedNow,
  selectionsBelow,
  type SelectedField,
} from './selected-fields.ts';

type Values = Readonly<Record<string, unknown>>;

interface Edge {
  readonly place: Place<PageRecords>;
  readonly cursor: () => string;
}

/** What a connection has, as far as it is selected. */
interface Connection {
  readonly edges: readonly Edge[];
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
  readonly total: number | null;
}

/** How an operation selects a connection, and so how it is written. Compiled once. */
export interface ConnectionShape {
  /** What each `nodes` and each `edges { node }` selects of a record. */
  readonly places: readonly (readonly SelectionNode[])[];
  /** The fields that are selected for these values of the variables. */
  selected(values: Values): readonly SelectedField[];
  /** Writes the connection as JSON. */
  write(connection: Connection, values: Values): string;
  /** Returns the errors of the records at each place where they are. */
  errorsIn(connection: Connection): readonly AnswerError[];
}

/** Writes a member of a connection, or of an edge. */
type Write<T> = (of: T, values: Values) => string;

/** @param types the names of its types, for `__typename` */
export function connectionShape(
  field: SelectedField,
  types: { readonly type: string; readonly edge: string; readonly pageInfo: string },
  fragments: Fragments,
): ConnectionShape {
  const places: (readonly SelectionNode[])[] = [];
  /** Lead from the connection to the record of an index, for each place. */
  const ways: ((index: number) => Path)[] = [];
  const addPlace = (records: SelectedField, way: (index: number) => Path): number => {
    ways.push(way);
    return places.push(selectionsBelow(records)) - 1;
  };

  const edgeWriter = (edges: string, inner: SelectedField): Write<Edge> => {
    if (inner.name === 'cursor') return ({ cursor }) => `"${cursor()}"`;
    if (inner.name !== 'node') return () => `"${types.edge}"`;
    const place = addPlace(inner, (index) => [edges, index, inner.key]);
    return (edge) => textAt(edge, place);
  };
  const writer = (member: SelectedField): Write<Connection> => {
    const { key, name } = member;
    switch (name) {
      case 'nodes': {
        const place = addPlace(member, (index) => [key, index]);
        return ({ edges }) => `[${edges.map((edge) => textAt(edge, place)).join(',')}]`;
      }
      case 'edges': {
        const inner = writtenBelow(member, fragments, (each) => edgeWriter(key, each));
        return ({ edges }, values) => {
          const writeEdge = inner(values);
          return `[${edges.map((edge) => writeEdge(edge)).join(',')}]`;
        };
      }
      case 'pageInfo': {
        const inner = writtenBelow(member, fragments, (each) => infoWriter(each, types.pageInfo));
        return (connection, values) => inner(values)(connection);
      }
      case 'totalCount':
        return ({ total }) => String(total);
      default:
        return () => `"${types.type}"`;
    }
  };
  const members = fieldsBelow(field, fragments);
  const write = writtenBelow(field, fragments, writer);

  return {
    places,
    selected: (values) => selectedNow(members, values),
    write: (connection, values) => write(values)(connection),
    errorsIn: ({ edges }) => {
      const errors: AnswerError[] = [];
      for (const [index, { place: at }] of edges.entries()) {
        for (const error of at.page.records.errorsAt(at.offset)) {
          const [place, ...rest] = error.path ?? [];
          const way = place === undefined ? [] : ways[place as number]!(index);
          errors.push({ ...error, path: [...way, ...rest] });
        }
      }
      return errors;
    },
  };
}

function textAt({ place: { page, offset } }: Edge, place: number): string {
  return page.records.textAt(offset, place);
}

/** Compiles how an object is written: its selected members, for values of the variables. */
function writtenBelow<T>(
  field: SelectedField,
  fragments: Fragments,
  writer: (member: SelectedField) => Write<T>,
): (values: Values) => (of: T) => string {
  const members = fieldsBelow(field, fragments).map((member) => {
    return { ...member, write: writer(member) };
  });
  return (values) => {
    const selected = selectedNow(members, values);
    return (of) => {
      let text = '';
      for (const { key, write } of selected) {
        text += `${text === '' ? '' : ','}"${key}":${write(of, values)}`;
      }
      return `{${text}}`;
    };
  };
}

function infoWriter({ name }: SelectedField, type: string): Write<Connection> {
  const valueOf = (connection: Connection): unknown => {
    switch (name) {
      case 'hasNextPage':
      case 'hasPreviousPage':
        return connection[name];
      case 'startCursor':
        return connection.edges[0]?.cursor() ?? null;
      case 'endCursor':
        return connection.edges.at(-1)?.cursor() ?? null;
      default:
        return type;
    }
  };
  return (connection) => JSON.stringify(valueOf(connection));
}
