import type { SelectionNode } from 'graphql';
import type { Window } from '../paging/connection.ts';
import type { Place } from '../paging/page.ts';
import type { Fragments } from '../schema/selections.ts';
import type { AnswerError, Path } from './answer.ts';
import type { JsonObject } from './json.ts';
import type { PageRecords } from './page-records.ts';
import {
  fieldsBelow,
  selectedNow,
  selectionsBelow,
  type SelectedField,
} from './selected-fields.ts';

/** A connection that was read, as far as it is selected. */
interface Connection extends Window<PageRecords> {
  readonly total: number | null;
  readonly cursorOf: (place: Place) => string;
  /** Of the operation's variables. */
  readonly values: Readonly<Record<string, unknown>>;
}

/** Makes a member of a connection, or of one of its edges, as JSON. */
type Make<T> = (connection: Connection, of: T) => unknown;

export type ConnectionShape = ReturnType<typeof connectionShape>;

/**
 * How an operation selects a connection, and so what it returns. Compiled once.
 *
 * @param types the names of its types, for `__typename`
 */
export function connectionShape(
  field: SelectedField,
  types: { readonly type: string; readonly edge: string; readonly pageInfo: string },
  fragments: Fragments,
) {
  const places: (readonly SelectionNode[])[] = [];
  /** Lead from the connection to the record of an index, for each place. */
  const ways: ((index: number) => Path)[] = [];

  const record = (
    member: SelectedField,
    way: (index: number) => Path,
  ): Make<Place<PageRecords>> => {
    const at = places.push(selectionsBelow(member)) - 1;
    ways.push(way);
    return (_, { page, offset }) => page.records.valueAt(offset, at);
  };
  /** Compiles an object of which these fields are selected, for one connection after the other. */
  const object = <T>(of: SelectedField, maker: (member: SelectedField) => Make<T>) => {
    const members = fieldsBelow(of, fragments).map((each) => ({ ...each, make: maker(each) }));
    return (connection: Connection) => {
      const selected = selectedNow(members, connection.values);
      return (source: T) => {
        const made: JsonObject = {};
        for (const { key, make } of selected) made[key] = make(connection, source);
        return made;
      };
    };
  };

  const inEdge = (edges: string, member: SelectedField): Make<Place<PageRecords>> => {
    if (member.name === 'cursor') return ({ cursorOf }, place) => cursorOf(place);
    if (member.name !== 'node') return () => types.edge;
    return record(member, (index) => [edges, index, member.key]);
  };
  const inConnection = (member: SelectedField): Make<void> => {
    const { key, name } = member;
    switch (name) {
      case 'nodes': {
        const node = record(member, (index) => [key, index]);
        return (connection) => connection.places.map((place) => node(connection, place));
      }
      case 'edges': {
        const edge = object<Place<PageRecords>>(member, (each) => inEdge(key, each));
        return (connection) => connection.places.map(edge(connection));
      }
      case 'pageInfo': {
        const info = object(member, (each) => inPageInfo(each, types.pageInfo));
        return (connection) => info(connection)();
      }
      case 'totalCount':
        return ({ total }) => total;
      default:
        return () => types.type;
    }
  };
  const members = fieldsBelow(field, fragments);
  const whole = object(field, inConnection);

  return {
    /** What each `nodes` and each `edges { node }` selects of a record. */
    places: places as readonly (readonly SelectionNode[])[],
    /** The fields that are selected for these values of the variables. */
    selected: (values: Connection['values']) => selectedNow(members, values),
    /** Writes a connection as JSON. */
    write: (connection: Connection) => JSON.stringify(whole(connection)()),
    /** Returns the errors of the records at each place where they are. */
    errorsIn: (connection: Connection): readonly AnswerError[] =>
      connection.places.flatMap(({ page, offset }, index) =>
        page.records.errorsAt(offset).map((error) => {
          const [place, ...rest] = error.path ?? [];
          const way = place === undefined ? [] : ways[place as number]!(index);
          return { ...error, path: [...way, ...rest] };
        }),
      ),
  };
}

/** @param type the name of the type */
function inPageInfo({ name }: SelectedField, type: string): Make<void> {
  switch (name) {
    case 'hasNextPage':
    case 'hasPreviousPage':
      return (connection) => connection[name];
    case 'startCursor':
      return (connection) => cursorAt(connection, 0);
    case 'endCursor':
      return (connection) => cursorAt(connection, -1);
    default:
      return () => type;
  }
}

function cursorAt({ places, cursorOf }: Connection, index: number): string | null {
  const place = places.at(index);
  return place ? cursorOf(place) : null;
}
