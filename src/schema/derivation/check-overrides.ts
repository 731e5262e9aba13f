import { isAbstractType, isObjectType, type GraphQLSchema } from 'graphql';
import { OperatorMistakes } from '../../errors.ts';
import { idOf, objectTypesOf } from '../derived.ts';
import { canReturn, idArgument } from './by-id.ts';
import { isCount, whyNotIdentifying, type FoundList } from './lists.ts';
import { SUBJECT, type FieldOverride, type Overrides } from './overrides.ts';

/**
 * Checks that adapters.json names what the schema has.
 *
 * @throws OperatorMistakes
 */
export function checkOverrides(
  { fields, types }: Overrides,
  schema: GraphQLSchema,
  lists: readonly FoundList[],
): void {
  refuse([
    ...Object.entries(fields).flatMap(([place, override]) =>
      mistakesOfField(place, override, schema, lists).map((why) => `fields.${place}: ${why}`),
    ),
    ...Object.entries(types).flatMap(([name, { byId }]) =>
      mistakesOfById(name, byId, schema).map((why) => `types.${name}.byId: ${why}`),
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
  const mistakes = Array.from(scopes.keys()).flatMap((place) => {
    const [typeName = '', field] = place.split('.');
    const type = schema.getType(typeName);
    if (isObjectType(type) && (field === undefined || type.getFields()[field])) return [];
    const instead = isAbstractType(type)
      ? `Write the scope at its types: ${schema.getPossibleTypes(type).join(', ')}.`
      : 'Use a name that `schema print` shows, or remove it; what gateway.config.ts adds needs GATEWAY_CONFIG.';
    return [
      `${place}: only object types and their fields have scopes, and this is not one. ${instead}`,
    ];
  });
  refuse(mistakes);
}

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
  if (!list) {
    const paged = lists.filter(({ verdict }) => typeof verdict !== 'string');
    const known = paged.map(({ coordinate }) => coordinate).join(', ');
    return [`there is no such list. The paged lists are: ${known || 'none'}.`];
  }
  const { verdict } = list;
  if (typeof verdict === 'string') return [`this is not a paged list, because ${verdict}.`];
  const { nodeType, pageType } = verdict;
  const { identity, count } = ofList;
  const types = identity === undefined ? [] : objectTypesOf(schema, nodeType);
  const isUncounted = count !== undefined && !isCount(pageType.getFields()[count]);
  return [
    ...types
      .flatMap((type) => whyNotIdentifying(type, identity!) ?? [])
      .map((why) => `${why} An identity is a scalar field.`),
    ...(isUncounted ? [`${pageType.name} has no field ${count}: Int for the count.`] : []),
  ];
}

function mistakesOfById(
  name: string,
  byId: string | null | undefined,
  schema: GraphQLSchema,
): string[] {
  if (byId === undefined) return [];
  const type = schema.getType(name);
  if (!isObjectType(type) || !idOf(type)) {
    return ['there is no object type of that name with a plain field id.'];
  }
  const query = schema.getQueryType()!;
  const field = byId === null ? undefined : query.getFields()[byId];
  if (byId === null || (field && canReturn(schema, field, type) && idArgument(field))) return [];
  return [`${query.name}.${byId} is not a field that returns ${name}, and requires only its id.`];
}
