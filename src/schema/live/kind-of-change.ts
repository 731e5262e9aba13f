import { ChangeType, CriticalityLevel, type Change } from '@graphql-inspector/core';
import { getNamedType, isInterfaceType, isObjectType, type GraphQLSchema } from 'graphql';

/** What each kind means to callers, as long as the snapshot stays as it is. */
export const KINDS = {
  breaking: 'what callers may ask for fails, or comes otherwise',
  dangerous: 'answers may hold what the snapshot does not know, or a default means something else',
  additive: 'nothing fails; what is new is not offered',
} as const;

export type ChangeKind = keyof typeof KINDS;

/** @param before the snapshot */
export function kindOfChange(change: Change, before: GraphQLSchema): ChangeKind {
  const { type, meta } = change;
  const { level } = change.criticality;
  if (level === CriticalityLevel.Breaking) return 'breaking';
  const { addedInterfaceName = '', enumName = '' } = meta as Partial<Record<string, string>>;
  // A record of that type comes where callers are promised the interface: the gateway cannot tell what it is.
  if (type === ChangeType.ObjectTypeInterfaceAdded) {
    return before.getType(addedInterfaceName) ? 'dangerous' : 'additive';
  }
  // What only callers give, nobody can give yet.
  if (type === ChangeType.FieldArgumentAdded) return 'additive';
  if (type === ChangeType.EnumValueAdded && !isAnswered(enumName, before)) return 'additive';
  return level === CriticalityLevel.Dangerous ? 'dangerous' : 'additive';
}

function isAnswered(type: string, schema: GraphQLSchema): boolean {
  return Object.values(schema.getTypeMap())
    .filter((holder) => isObjectType(holder) || isInterfaceType(holder))
    .flatMap((holder) => Object.values(holder.getFields()))
    .some((field) => getNamedType(field.type).name === type);
}
