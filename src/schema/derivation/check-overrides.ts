import { isObjectType, type GraphQLObjectType, type GraphQLSchema } from 'graphql';
import { OperatorMistakes } from '../../errors.ts';
import { idOf, objectTypesOf } from '../derived.ts';
import type { ByIdFields } from './by-id.ts';
import { isCount, type FoundList } from './lists.ts';
import { SUBJECT, type FieldOverride, type Overrides } from './overrides.ts';

/**
 * Checks that adapters.json names what the schema has.
 *
 * @throws OperatorMistakes
 */
export function checkOverrides(
  { fields, types }: Overrides,
  schema: GraphQLSchema,
  { lists, byId: found }: { readonly lists: readonly FoundList[]; readonly byId: ByIdFields },
): void {
  const query = schema.getQueryType()!;
  refuse([
    ...Object.entries(fields).flatMap(([place, override]) =>
      mistakesOfField(place, override, schema, lists).map((why) => `fields.${place}: ${why}`),
    ),
    ...Object.entries(types).flatMap(([name, { byId }]) =>
      byId === null || byId === undefined || found.has(schema.getType(name) as GraphQLObjectType)
        ? []
        : [`types.${name}.byId: ${query.name}.${byId} does not return ${name} by its id alone.`],
    ),
  ]);
}

/**
 * Checks that the places that have scopes are in the schema.
 *
 * @param schema with what a company adds
 * @throws OperatorMistakes
 */
export function checkScopes(scopes: ReadonlyMap<string, string>, schema: GraphQLSchema): void {
  const unknown = Array.from(scopes.keys()).filter((place) => {
    const [typeName = '', field] = place.split('.');
    const type = schema.getType(typeName);
    return !isObjectType(type) || (field !== undefined && !type.getFields()[field]);
  });
  refuse(unknown.map((place) => `${place}: ${SCOPED}`));
}

const SCOPED =
  'only object types and their fields have scopes, and this is not one. Use names that `schema print` shows, of an interface ' +
  'those of its types; what gateway.config.ts adds needs GATEWAY_CONFIG.';

function refuse(mistakes: readonly string[]): void {
  if (mistakes.length > 0) throw new OperatorMistakes(SUBJECT, mistakes);
}

function mistakesOfField(
  place: string,
  { scope, ...ofList }: FieldOverride,
  schema: GraphQLSchema,
  lists: readonly FoundList[],
): string[] {
  // Any field may have a scope: see checkScopes.
  if (scope !== undefined && Object.keys(ofList).length === 0) return [];
  const list = lists.find(({ coordinate }) => coordinate === place);
  const verdict = list?.verdict ?? 'there is no such list';
  if (typeof verdict === 'string') {
    return [`this is not a paged list, because ${verdict}. \`schema explain\` shows all lists.`];
  }
  const { nodeType, pageType } = verdict;
  const { identity, count } = ofList;
  const records = identity === undefined ? [] : objectTypesOf(schema, nodeType);
  const isUncounted = count !== undefined && !isCount(pageType.getFields()[count]);
  return [
    ...(records.every((type) => idOf(type, identity))
      ? []
      : [`${identity} is not a scalar field of ${nodeType.name} that identifies a record.`]),
    ...(isUncounted ? [`${pageType.name} has no field ${count}: Int for the count.`] : []),
  ];
}
