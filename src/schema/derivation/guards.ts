import {
  isAbstractType,
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
  isSpecifiedScalarType,
  type GraphQLSchema,
} from 'graphql';
import { nearestWord } from '../../words.ts';
import type { Guard } from '../derived.ts';

/** An entry of adapters.json that says who may read something. */
export interface GuardEntry extends Guard {
  readonly section: 'types' | 'fields';
  /** The name of a type, or the coordinate of a field or argument. */
  readonly place: string;
}

/**
 * Finds the mistakes of an entry.
 *
 * @param owner what has the schema, for messages
 */
export function guardMistakes(schema: GraphQLSchema, entry: GuardEntry, owner: string): string[] {
  return entry.section === 'types'
    ? mistakesOfType(schema, entry, owner)
    : mistakesOfField(schema, entry, owner);
}

/** Whether an entry names something that a schema lacks, and that could be added to it. */
export function isMissing(schema: GraphQLSchema, { section, place }: GuardEntry): boolean {
  if (section === 'types') return schema.getType(place) === undefined;
  const parts = COORDINATE.exec(place)?.groups;
  if (!parts) return false;
  const type = schema.getType(parts['type']!);
  return !((isObjectType(type) || isInterfaceType(type)) && type.getFields()[parts['field']!]);
}

function mistakesOfField(
  schema: GraphQLSchema,
  { place: coordinate, scope }: GuardEntry,
  owner: string,
): string[] {
  const place = `fields.${coordinate}`;
  const parts = COORDINATE.exec(coordinate)?.groups;
  if (!parts) {
    return [
      `${place}: this is not a field. Write Type.field, or Type.field(argument:) for an argument.`,
    ];
  }
  const { type: typeName = '', field: fieldName = '', argument } = parts;
  const type = schema.getType(typeName);
  const fieldTypes = Object.values(schema.getTypeMap()).filter(
    (each) => (isObjectType(each) || isInterfaceType(each)) && !isIntrospectionType(each),
  );
  if (!isObjectType(type) && !isInterfaceType(type)) {
    const known = fieldTypes.map(({ name }) => name);
    return [`${place}: there is no type ${typeName} with fields. ${wasMeant(typeName, known)}`];
  }
  if (scope !== undefined && isInterfaceType(type)) {
    const fields = schema.getPossibleTypes(type).map(({ name }) => `${name}.${fieldName}`);
    return [
      `${place}.scope: ${typeName} is an interface. Write the scope at the fields of its types: ${fields.join(', ')}.`,
    ];
  }
  const fields = type.getFields();
  const field = fields[fieldName];
  if (!field) {
    return [
      `${place}: ${owner} has no field ${typeName}.${fieldName}. ${wasMeant(fieldName, Object.keys(fields))} ` +
        'Fields that the gateway derives have the scopes of the field that they are derived from.',
    ];
  }
  if (argument === undefined || field.args.some(({ name }) => name === argument)) return [];
  const known = field.args.map(({ name }) => name);
  return [
    `${place}: ${typeName}.${fieldName} has no argument ${argument}. ${wasMeant(argument, known)}`,
  ];
}

/** As the specification writes schema coordinates. */
const COORDINATE = /^(?<type>\w+)\.(?<field>\w+)(\((?<argument>\w+):\))?$/;

function wasMeant(word: string, known: readonly string[]): string {
  const meant = nearestWord(word, known);
  if (meant !== undefined) return `Was ${meant} meant?`;
  return known.length > 0 && known.length <= 20
    ? `Write one of ${known.join(', ')}.`
    : 'Correct the name, or remove it.';
}

function mistakesOfType(
  schema: GraphQLSchema,
  { place: name, scope }: GuardEntry,
  owner: string,
): string[] {
  const type = schema.getType(name);
  if (!type || isSpecifiedScalarType(type) || isIntrospectionType(type)) {
    const known = Object.keys(schema.getTypeMap()).filter((each) => !each.startsWith('__'));
    return [`types.${name}: ${owner} has no such type. ${wasMeant(name, known)}`];
  }
  if (scope === undefined || isObjectType(type)) return [];
  const instead = isAbstractType(type)
    ? `Write it at its types: ${schema.getPossibleTypes(type).join(', ')}.`
    : 'Write it at the fields or arguments that have this type.';
  return [`types.${name}.scope: only object types and fields have scopes. ${instead}`];
}
