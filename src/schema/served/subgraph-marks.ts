import {
  getNamedType,
  isInputObjectType,
  isIntrospectionType,
  isObjectType,
  isRequiredArgument,
  isRequiredInputField,
  isUnionType,
  type GraphQLField,
  type GraphQLInputObjectType,
  type GraphQLNamedType,
  type GraphQLSchema,
  type GraphQLType,
} from 'graphql';
import {
  hasFields,
  isPage,
  type DerivedField,
  type Result,
  type TypeWithFields,
} from '../derived.ts';
import { addMarks, NO_MARKS, type Marks } from '../field-scopes.ts';
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
  const all = new Map(marks);
  addScopes(all, types);
  addTags(new Tags(all), types, wrappersIn(types, derived), rootsOf(schema));
  return all;
}

/** Not at fields of interfaces: composition refuses scopes there, and copies those of their types. */
function addScopes(marks: Map<string, Marks>, types: readonly GraphQLNamedType[]): void {
  for (const type of types.filter(isObjectType)) {
    for (const field of Object.values(type.getFields())) {
      const { scopes } = marks.get(getNamedType(field.type).name) ?? NO_MARKS;
      addMarks(marks, `${type.name}.${field.name}`, { scopes, tags: [] });
    }
  }
}

/** Repeats the rules until no place gets another tag. */
function addTags(
  tags: Tags,
  types: readonly GraphQLNamedType[],
  wrappers: readonly Wrapper[],
  roots: readonly GraphQLNamedType[],
): void {
  do {
    tags.grew = false;
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
  } while (tags.grew);
}

class Tags {
  readonly #marks: Map<string, Marks>;
  /** Whether a place got another tag. */
  grew = false;

  constructor(marks: Map<string, Marks>) {
    this.#marks = marks;
  }

  at(place: string): readonly string[] {
    return (this.#marks.get(place) ?? NO_MARKS).tags;
  }

  ofType(type: GraphQLType): readonly string[] {
    return this.at(getNamedType(type).name);
  }

  inAll(places: readonly string[]): string[] {
    const [first = ''] = places;
    return this.at(first).filter((tag) => places.every((place) => this.at(place).includes(tag)));
  }

  add(place: string, tags: readonly string[]): void {
    this.grew = addMarks(this.#marks, place, { scopes: [], tags }) || this.grew;
  }
}

function addToInput(tags: Tags, input: GraphQLInputObjectType): void {
  const fields = Object.values(input.getFields());
  const places = fields.map(({ name }) => `${input.name}.${name}`);
  for (const [at, field] of fields.entries()) {
    const place = places[at]!;
    tags.add(place, tags.ofType(field.type));
    if (isRequiredInputField(field)) tags.add(input.name, tags.at(place));
  }
  tags.add(input.name, tags.inAll(places));
}

function addToField(tags: Tags, parent: TypeWithFields, field: Field): void {
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
    // If the whole parent has the tag, the field is hidden with it, and the field of the interface can stay.
    tags.add(of, without(tags.at(place), tags.at(parent.name)));
    for (const { name } of implemented.args) {
      const ofArgument = without(tags.at(`${place}(${name}:)`), tags.at(place));
      tags.add(`${of}(${name}:)`, without(ofArgument, tags.at(parent.name)));
    }
  }
}

function without(tags: readonly string[], others: readonly string[]): string[] {
  return tags.filter((tag) => !others.includes(tag));
}

type Field = GraphQLField<unknown, unknown>;
/** The fields that are in the SDL. */
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
      case 'service':
        return [];
    }
  });
  return [...pages, ...others];
}

function ofResult({ result }: { readonly result: Result | undefined }): Wrapper[] {
  return result ? [{ name: result.type.name, of: result.success }] : [];
}
