import type { SelectionNode } from 'graphql';
import { withPath, type AnswerError, type Path } from './answer.ts';
import type { ListRecord } from './list-record.ts';
import type { Fragments } from '../selections.ts';
import {
  fieldsBelow,
  selectedNow,
  selectionsBelow,
  type SelectedField,
} from './selected-fields.ts';

/** What a connection has, as far as it is selected. */
interface ConnectionValues {
  readonly edges: readonly { readonly record: ListRecord; readonly cursor: () => string }[];
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
  readonly total: { readonly count: number | null } | undefined;
}

/** The names of the types of a connection. */
interface ConnectionTypes {
  readonly type: string;
  readonly edge: string;
  readonly pageInfo: string;
}

/** How an operation selects a connection, and so how it is written. Compiled once. */
export class ConnectionShape {
  /** What each `nodes` and each `edges { node }` selects of a record. */
  readonly places: readonly (readonly SelectionNode[])[];
  readonly #types: ConnectionTypes;
  readonly #fields: readonly SelectedField[];
  /** What is selected below `edges` and `pageInfo`. */
  readonly #below: ReadonlyMap<SelectedField, readonly SelectedField[]>;
  /** The indexes in `places` of `nodes`, and of each `node` of `edges`. */
  readonly #placeOf: ReadonlyMap<SelectedField, number>;

  constructor(field: SelectedField, types: ConnectionTypes, fragments: Fragments) {
    const places: (readonly SelectionNode[])[] = [];
    const placeOf = new Map<SelectedField, number>();
    const below = new Map<SelectedField, readonly SelectedField[]>();
    const addPlace = (records: SelectedField) => {
      placeOf.set(records, places.length);
      places.push(selectionsBelow(records));
    };
    this.#fields = fieldsBelow(field, fragments);
    for (const member of this.#fields) {
      if (member.name === 'nodes') addPlace(member);
      if (member.name !== 'edges' && member.name !== 'pageInfo') continue;
      const inner = fieldsBelow(member, fragments);
      below.set(member, inner);
      if (member.name === 'edges') inner.filter(({ name }) => name === 'node').forEach(addPlace);
    }
    this.places = places;
    this.#types = types;
    this.#below = below;
    this.#placeOf = placeOf;
  }

  /** What has to be read for these values of the variables. */
  needs(values: Values) {
    const names = selectedNow(this.#fields, values).map(({ name }) => name);
    const isRead = ['edges', 'nodes', 'pageInfo'].some((name) => names.includes(name));
    return { isRead, hasTotal: names.includes('totalCount') };
  }

  /** The keys of `totalCount`, which may be null with an error. */
  totalKeys(values: Values): readonly string[] {
    return selectedNow(this.#fields, values)
      .filter(({ name }) => name === 'totalCount')
      .map(({ key }) => key);
  }

  /**
   * Writes the connection as JSON.
   *
   * @param errors receives the errors of its records
   */
  write(connection: ConnectionValues, values: Values, path: Path, errors: AnswerError[]): string {
    const { edges, total } = connection;
    for (const { record } of edges) {
      for (const { error, place } of record.errors) {
        if (place === undefined) errors.push(withPath(error, path));
      }
    }
    const members = selectedNow(this.#fields, values).map((field) => {
      const { key, name } = field;
      switch (name) {
        case 'nodes': {
          const place = this.#placeOf.get(field)!;
          edges.forEach(({ record }, index) =>
            report(record, place, [...path, key, index], errors),
          );
          return `"${key}":[${edges.map(({ record }) => record.texts[place]).join(',')}]`;
        }
        case 'edges':
          return `"${key}":[${this.#edges(field, connection, values, [...path, key], errors)}]`;
        case 'pageInfo':
          return `"${key}":{${this.#pageInfo(field, connection, values)}}`;
        case 'totalCount':
          return `"${key}":${total?.count ?? null}`;
        default:
          return `"${key}":"${this.#types.type}"`;
      }
    });
    return `{${members.join(',')}}`;
  }

  #edges(
    field: SelectedField,
    { edges }: ConnectionValues,
    values: Values,
    path: Path,
    errors: AnswerError[],
  ): string {
    const selected = selectedNow(this.#below.get(field)!, values).map((inner) => ({
      ...inner,
      place: this.#placeOf.get(inner),
    }));
    return edges
      .map(({ record, cursor }, index) => {
        let edge = '';
        for (const { name, key, place } of selected) {
          edge += `${edge === '' ? '' : ','}"${key}":`;
          if (name === 'cursor') edge += `"${cursor()}"`;
          else if (place === undefined) edge += `"${this.#types.edge}"`;
          else {
            edge += record.texts[place];
            if (record.errors.length > 0) report(record, place, [...path, index, key], errors);
          }
        }
        return `{${edge}}`;
      })
      .join(',');
  }

  #pageInfo(
    field: SelectedField,
    { edges, hasNextPage, hasPreviousPage }: ConnectionValues,
    values: Values,
  ): string {
    const valueOf = (name: string): unknown => {
      switch (name) {
        case 'hasNextPage':
          return hasNextPage;
        case 'hasPreviousPage':
          return hasPreviousPage;
        case 'startCursor':
          return edges[0]?.cursor() ?? null;
        case 'endCursor':
          return edges.at(-1)?.cursor() ?? null;
        default:
          return this.#types.pageInfo;
      }
    };
    return selectedNow(this.#below.get(field)!, values)
      .map(({ key, name }) => `"${key}":${JSON.stringify(valueOf(name))}`)
      .join(',');
  }
}

type Values = Readonly<Record<string, unknown>>;

/** Adds the errors of a record where one place selects it. */
function report(
  { errors: all }: ListRecord,
  place: number,
  path: Path,
  errors: AnswerError[],
): void {
  for (const { error, place: of, path: below } of all) {
    if (of === place) errors.push(withPath(error, [...path, ...below]));
  }
}
