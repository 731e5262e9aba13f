import { parse, type DocumentNode } from 'graphql';
import { WALK_AGAIN_AFTER_MS } from '../../paging/lookup/lookup-walks.ts';
import type { Entity } from '../derivation/entity.ts';

/**
 * What makes the schema a subgraph of Federation 2, and the fields that give one record by its id.
 *
 * @param root the query root's name
 */
export function entityTypes(entities: readonly Entity[], root: string): DocumentNode {
  const fields = entities.map(recordField);
  const names = entities.map(({ type }) => type.name);
  return parse(`
"""For routers: what this subgraph offers a supergraph."""
type _Service {
  """The schema in SDL, with the directives of Federation 2."""
  sdl: String!
}

${
  names.length > 0
    ? `"""For routers: the \`__typename\` and the \`id\` of a record."""
scalar _Any

"""For routers: the types whose records other subgraphs can refer to."""
union _Entity = ${names.join(' | ')}`
    : ''
}

extend type ${root} {
  """For routers: what this subgraph offers a supergraph."""
  _service: _Service!
  ${
    names.length > 0
      ? `"""
  For routers: records by their ids, in the order in which they are asked for; null for those that there are not.
  """
  _entities(
    """The \`__typename\` and the \`id\` of each."""
    representations: [_Any!]!
  ): [_Entity]!`
      : ''
  }
  ${fields.join('\n')}
}`);
}

function recordField({ type, idType, lookup, field }: Entity): string {
  if (field === undefined || lookup?.kind !== 'list') return '';
  return `
  """
  The ${type.name} with this id; null when there is none. The service has no such field, so the record is looked
  for in \`${lookup.adapter.name}\`: where it was met last, near there, at both ends of the list, and then by a walk
  of the whole, at most one in ${WALK_AGAIN_AFTER_MS / 1000} seconds. What was added to the middle of the list by others is missing so long.
  """
  ${field}(
    """As the service has it."""
    id: ${String(idType)}!
  ): ${type.name}`;
}
