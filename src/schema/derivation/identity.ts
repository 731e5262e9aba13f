import {
  getNamedType,
  getNullableType,
  GraphQLBoolean,
  isEnumType,
  isLeafType,
  isListType,
  isObjectType,
  isRequiredArgument,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLObjectType,
} from 'graphql';
import type { FieldPath } from '../derived.ts';

/** Whether the records of a type have all of these values. */
export function isIdentified(type: GraphQLCompositeType, paths: readonly FieldPath[]): boolean {
  return isObjectType(type) && paths.every((path) => whyNotIdentifying(type, path) === undefined);
}

/** Why a path leads to no value that can identify a record, and what to write instead; undefined if it does. */
export function identityMistake(type: GraphQLObjectType, path: FieldPath): string | undefined {
  const why = whyNotIdentifying(type, path);
  return why && `${why} ${insteadOf(type)}`;
}

function whyNotIdentifying(type: GraphQLObjectType, path: FieldPath): string | undefined {
  let on = type;
  for (const [at, name] of path.entries()) {
    const field = on.getFields()[name];
    const place = path.slice(0, at + 1).join('.');
    if (!field) return `${on.name} has no field ${name}.`;
    if (field.args.some(isRequiredArgument)) return `${place} has required arguments.`;
    const inner = getNullableType(field.type);
    if (isListType(inner)) return `${place} is a list.`;
    const isLast = at === path.length - 1;
    if (isLast && isLeafType(inner)) {
      return inner === GraphQLBoolean ? `${place} is a Boolean.` : undefined;
    }
    if (isLast) return `${place} is not a scalar.`;
    if (!isObjectType(inner)) return `${place} is not an object.`;
    on = inner;
  }
  return undefined;
}

/**
 * What to write in adapters.json for a list whose records have no id: their references to other records, or else their
 * scalars. Only who knows the service knows whether these identify a record.
 *
 * @param list for example `Query.responses` @param types of its records
 */
export function identityToWrite(list: string, types: readonly GraphQLObjectType[]): string {
  const [first, ...others] = types;
  const paths = (first ? likelyIdentity(first) : []).filter((path) =>
    others.every((type) => isIdentified(type, [path])),
  );
  const written = paths.length > 0 ? paths.map((path) => JSON.stringify(path.join('.'))) : ['"…"'];
  return `"fields": { "${list}": { "identity": [${written.join(', ')}] } }`;
}

function likelyIdentity(type: GraphQLObjectType): readonly FieldPath[] {
  const references = fieldsOf(type).flatMap((field): FieldPath[] => {
    const of = getNullableType(field.type);
    if (isObjectType(of) && isIdentified(of, [['id']])) return [[field.name, 'id']];
    return isLeafType(of) && (of.name === 'ID' || /(^id|Id|ID)$/.test(field.name))
      ? [[field.name]]
      : [];
  });
  if (references.length > 0) return references;
  return fieldsOf(type)
    .filter(
      (field) => isLeafType(getNullableType(field.type)) && !isEnumType(getNamedType(field.type)),
    )
    .map(({ name }) => [name])
    .filter((path) => isIdentified(type, [path]));
}

function insteadOf(type: GraphQLObjectType): string {
  const paths = likelyIdentity(type).map((path) => path.join('.'));
  return paths.length > 0
    ? `Write paths through objects to scalars, such as ${paths.join(', ')}.`
    : 'Write paths through objects to scalars.';
}

function fieldsOf(type: GraphQLObjectType): readonly GraphQLField<unknown, unknown>[] {
  return Object.values(type.getFields()).filter((field) => !field.args.some(isRequiredArgument));
}
