import {
  getNamedType,
  isInputObjectType,
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
  isRequiredArgument,
  isRequiredInputField,
  isUnionType,
  type GraphQLField,
  type GraphQLInputObjectType,
  type GraphQLInterfaceType,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLSchema,
  type GraphQLType,
} from 'graphql';
import { isPage, type DerivedField, type Result } from '../derived.ts';
import type { Marks } from '../field-scopes.ts';
import { isRouterField, ROUTER_TYPES } from '../names.ts';

/**
 * Returns the scopes and tags of everything in the SDL of the subgraph, with what follows from those of types.
 *
 * The gateway knows what a type needs wherever it is returned. A router looks only at a field and its parent, so the
 * scopes of a type are at each field that returns it. A contract hides only what has the tag, and what is left must be
 * a valid schema. So a tag is also at everything that would not be valid, or be empty, without what has it:
 *
 * - the fields, arguments and input fields of a type; its pages, connections, edges and results;
 * - a field with such a required argument, and an input type with such a required field;
 * - a type whose fields all have it, and a union whose members all have it;
 * - a field or argument of an interface, if that of one of its types has it.
 *
 * @param schema what callers see, with what a company adds
 * @param marks by the names of types, and the coordinates of fields and arguments
 */
export function subgraphMarks(
  schema: GraphQLSchema,
  derived: readonly DerivedField[],
  marks: ReadonlyMap<string, Marks>,
): ReadonlyMap<string, Marks> {
  if (marks.size === 0) return marks;
  const types = Object.values(schema.getTypeMap()).filter(
    (type) => !isIntrospectionType(type) && !ROUTER_TYPES.includes(type.name),
  );
  const scopes = scopesOf(types, marks);
  const tags = tagsOf(types, wrappersIn(types, derived), rootsOf(schema), marks);
  const places = new Set([...scopes.keys(), ...tags.keys()]);
  return new Map(
    Array.from(places, (place) => [
      place,
      { scopes: [...(scopes.get(place) ?? NONE)], tags: [...(tags.get(place) ?? NONE)] },
    ]),
  );
}

type Names = ReadonlySet<string>;

const NONE: Names = new Set();

/** Not at fields of interfaces: composition refuses scopes there, and copies those of their types. */
function scopesOf(
  types: readonly GraphQLNamedType[],
  marks: ReadonlyMap<string, Marks>,
): ReadonlyMap<string, Names> {
  const scopes = new Map<string, Names>();
  const add = (place: string, more: readonly string[] = []) => {
    if (more.length > 0) scopes.set(place, new Set([...(scopes.get(place) ?? NONE), ...more]));
  };
  for (const [place, own] of marks) add(place, own.scopes);
  for (const type of types.filter(isObjectType)) {
    for (const field of Object.values(type.getFields())) {
      add(`${type.name}.${field.name}`, marks.get(getNamedType(field.type).name)?.scopes);
    }
  }
  return scopes;
}

/** Repeats the rules until no place gets another tag. */
function tagsOf(
  types: readonly GraphQLNamedType[],
  wrappers: readonly Wrapper[],
  roots: readonly GraphQLNamedType[],
  marks: ReadonlyMap<string, Marks>,
): ReadonlyMap<string, Names> {
  const tags = new TagsOfPlaces();
  for (const [place, own] of marks) tags.add(place, own.tags);
  while (tags.grew()) {
    for (const { name, of } of wrappers) tags.add(name, tags.ofType(of));
    for (const type of types) {
      if (isInputObjectType(type)) {
        addToInput(tags, type);
      } else if (isUnionType(type)) {
        tags.add(type.name, tags.inAll(type.getTypes().map(({ name }) => name)));
      } else if (hasFields(type)) {
        for (const field of fieldsIn(type)) addToField(tags, type, field);
        const places = fieldsIn(type).map(({ name }) => `${type.name}.${name}`);
        if (!roots.includes(type)) tags.add(type.name, tags.inAll(places));
      }
    }
  }
  return tags.byPlace;
}

class TagsOfPlaces {
  readonly byPlace = new Map<string, Names>();
  #grew = false;

  at(place: string): Names {
    return this.byPlace.get(place) ?? NONE;
  }

  ofType(type: GraphQLType): Names {
    return this.at(getNamedType(type).name);
  }

  inAll(places: readonly string[]): string[] {
    const [first = ''] = places;
    return [...this.at(first)].filter((tag) => places.every((place) => this.at(place).has(tag)));
  }

  add(place: string, tags: Iterable<string>): void {
    const known = this.at(place);
    const more = [...tags].filter((tag) => !known.has(tag));
    if (more.length === 0) return;
    this.byPlace.set(place, new Set([...known, ...more]));
    this.#grew = true;
  }

  /** Whether tags were added since the last call. */
  grew(): boolean {
    const grew = this.#grew;
    this.#grew = false;
    return grew;
  }
}

function addToInput(tags: TagsOfPlaces, input: GraphQLInputObjectType): void {
  const fields = Object.values(input.getFields());
  const places = fields.map(({ name }) => `${input.name}.${name}`);
  for (const [at, field] of fields.entries()) {
    const place = places[at]!;
    tags.add(place, tags.ofType(field.type));
    if (isRequiredInputField(field)) tags.add(input.name, tags.at(place));
  }
  tags.add(input.name, tags.inAll(places));
}

function addToField(tags: TagsOfPlaces, parent: TypeWithFields, field: Field): void {
  const place = `${parent.name}.${field.name}`;
  tags.add(place, tags.ofType(field.type));
  for (const argument of field.args) {
    const at = `${place}(${argument.name}:)`;
    tags.add(at, tags.ofType(argument.type));
    if (isRequiredArgument(argument)) tags.add(place, tags.at(at));
  }
  for (const type of parent.getInterfaces()) {
    const implemented = type.getFields()[field.name];
    if (!implemented) continue;
    const of = `${type.name}.${field.name}`;
    // With its whole parent, a field may go alone.
    tags.add(of, without(tags.at(place), tags.at(parent.name)));
    for (const { name } of implemented.args) {
      const own = without(tags.at(`${place}(${name}:)`), tags.at(place));
      tags.add(`${of}(${name}:)`, without(own, tags.at(parent.name)));
    }
  }
}

function without(tags: Iterable<string>, others: Names): string[] {
  return [...tags].filter((tag) => !others.has(tag));
}

type Field = GraphQLField<unknown, unknown>;
type TypeWithFields = GraphQLObjectType | GraphQLInterfaceType;

function hasFields(type: GraphQLNamedType): type is TypeWithFields {
  return isObjectType(type) || isInterfaceType(type);
}

/** Those that the SDL has. */
function fieldsIn(type: TypeWithFields): Field[] {
  return Object.values(type.getFields()).filter(({ name }) => !isRouterField(name));
}

function rootsOf(schema: GraphQLSchema): GraphQLNamedType[] {
  return [schema.getQueryType(), schema.getMutationType()].filter((root) => root != null);
}

/** A type that has no purpose without another: a page without its records, or a result without what it is for. */
interface Wrapper {
  readonly name: string;
  readonly of: GraphQLType;
}

function wrappersIn(
  types: readonly GraphQLNamedType[],
  derived: readonly DerivedField[],
): Wrapper[] {
  const pages = types.flatMap((type) => {
    const items = hasFields(type) && isPage(type) ? type.getFields()['items'] : undefined;
    return items ? [{ name: type.name, of: items.type }] : [];
  });
  const others = derived.flatMap((field) => {
    switch (field.kind) {
      case 'all':
        return ofResult(field.adapter);
      case 'connection': {
        const { connection, nodeType: of } = field.adapter;
        const wrappers = [connection!.type, connection!.edge].map((name) => ({ name, of }));
        return [...wrappers, ...ofResult(field.adapter)];
      }
      case 'entities':
        return field.entities.flatMap(({ lookup }) =>
          lookup?.kind === 'id' ? ofResult(lookup) : [],
        );
      case 'record':
      case 'node':
      case 'nodes':
      case 'service':
        return [];
    }
  });
  return [...pages, ...others];
}

function ofResult({ result }: { readonly result: Result | undefined }): Wrapper[] {
  return result ? [{ name: result.type.name, of: result.wanted }] : [];
}
