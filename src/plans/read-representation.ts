import type { Entity } from '../schema/derived.ts';
import { readId } from './read-id.ts';
import type { RecordId } from './record-loader.ts';

/** What a representation refers to, or what is wrong with it. */
export type Representation = { readonly entity: Entity; readonly id: RecordId } | string;

/**
 * Reads one representation of an entity (Federation, `_Any`). What was sent is not repeated in the messages, but for
 * names of types. No error is made of a wrong one here: a megabyte can hold half a million of them.
 */
export function readRepresentation(
  representation: unknown,
  entities: ReadonlyMap<string, Entity>,
): Representation {
  if (
    typeof representation !== 'object' ||
    representation === null ||
    Array.isArray(representation)
  ) {
    return 'A representation must be an object with `__typename` and `id`.';
  }
  const { __typename: type, id: given } = representation as { __typename?: unknown; id?: unknown };
  if (typeof type !== 'string') {
    return 'This representation has no `__typename`, which names its type.';
  }
  const entity = entities.get(type);
  if (!entity) {
    const name = NAME.test(type) ? type : 'of that name';
    return `There is no entity ${name} here. The SDL of this subgraph names those that there are.`;
  }
  if (!entity.lookup) {
    return `No ${type} can be found by its id here: its key is \`resolvable: false\`. Ask another subgraph.`;
  }
  if (given === undefined || given === null) {
    return `This representation of a ${type} has no \`id\`, which is its key.`;
  }
  const id = readId(given, lookupType(entity));
  return id === undefined ? wrongId(entity) : { entity, id };
}

export function wrongId(entity: Entity): string {
  const type = String(lookupType(entity)).replace('!', '');
  return `The id of a ${entity.type.name} must be of the type ${type}, and this one is not.`;
}

/** Names of GraphQL that are not too long to be repeated. */
const NAME = /^[_A-Za-z]\w{0,99}$/;

function lookupType({ lookup, idType }: Entity) {
  return lookup?.kind === 'id' ? lookup.argument.type : idType;
}
