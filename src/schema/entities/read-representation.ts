import type { GraphQLError } from 'graphql';
import { codedError } from '../../errors.ts';
import type { Entity } from '../derivation/entity.ts';
import { readId } from './read-id.ts';
import type { RecordId } from './record-loader.ts';

/**
 * Reads one representation of an entity (Federation, `_Any`). What was sent is not repeated in the messages,
 * but for names of types.
 *
 * @throws BAD_USER_INPUT
 */
export function readRepresentation(
  representation: unknown,
  entities: ReadonlyMap<string, Entity>,
): { entity: Entity; id: RecordId } {
  if (
    typeof representation !== 'object' ||
    representation === null ||
    Array.isArray(representation)
  ) {
    throw refused('A representation must be an object with `__typename` and `id`.');
  }
  const { __typename: type, id: given } = representation as { __typename?: unknown; id?: unknown };
  if (typeof type !== 'string') {
    throw refused('This representation has no `__typename`, which names its type.');
  }
  const entity = entities.get(type);
  if (!entity) {
    const name = NAME.test(type) ? type : 'of that name';
    throw refused(
      `There is no entity ${name} here. The SDL of this subgraph names those that there are.`,
    );
  }
  if (!entity.lookup) {
    throw refused(
      `No ${type} can be found by its id here: its key is \`resolvable: false\`. Ask another subgraph.`,
    );
  }
  if (given === undefined || given === null) {
    throw refused(`This representation of a ${type} has no \`id\`, which is its key.`);
  }
  const id = readId(given, lookupType(entity));
  if (id === undefined) throw wrongId(entity);
  return { entity, id };
}

export function wrongId(entity: Entity): GraphQLError {
  const type = String(lookupType(entity)).replace('!', '');
  return refused(
    `The id of a ${entity.type.name} must be of the type ${type}, and this one is not.`,
  );
}

/** Names of GraphQL that are not too long to be repeated. */
const NAME = /^[_A-Za-z]\w{0,99}$/;

function lookupType({ lookup, idType }: Entity) {
  return lookup?.kind === 'id' ? lookup.argument.type : idType;
}

function refused(message: string): GraphQLError {
  return codedError('BAD_USER_INPUT', message);
}
