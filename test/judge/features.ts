import { Kind, parse, TypeInfo, visit, visitWithTypeInfo } from 'graphql';
import type { Answer } from './cursors.ts';
import type { Operation } from './operation.ts';
import type { World } from './world.ts';

export const FEATURES = [
  'all',
  'connection',
  'record',
  'entities',
  'service field',
  'nested all',
  'nested connection',
  'a list in a list',
  'totalCount',
  'last',
  'cursor as after',
  'cursor as before',
  '__typename',
  'renamed type',
  'alias',
  'alias like another field',
  'the same key twice',
  'inline fragment',
  'inline fragment without a type',
  'named fragment',
  'fragment used twice',
  'fragment on an interface or union',
  'variable',
  'variable with a default',
  'null',
  '@skip with a literal',
  '@skip with a variable',
  '@include with a literal',
  '@include with a variable',
  'condition of a fragment spread',
  'condition of an inline fragment',
  'planted error',
  'error in a list',
  'error member of a result',
] as const;

/** What an operation has of the language and of the served schema. */
export function featuresOf(
  { served }: World,
  { query, variables }: Operation,
  { errors = [] }: Answer,
): Set<string> {
  const features = new Set<string>();
  const types = new TypeInfo(served.schema);
  const derived = new Map(served.derived.map((each) => [`${each.parent}.${each.name}`, each.kind]));
  const root = served.schema.getQueryType();
  let drains = 0;
  const spreads = new Set<string>();
  const document = parse(query, { noLocation: true });
  visit(
    document,
    visitWithTypeInfo(types, {
      Field: {
        enter: ({ name, alias }) => {
          const parent = types.getParentType();
          const kind = derived.get(`${parent?.name}.${name.value}`);
          const place = parent === root ? '' : 'nested ';
          if (kind !== undefined) features.add(`${place}${kind}`);
          if (kind !== undefined && drains > 0) features.add('a list in a list');
          if (kind !== undefined) drains += 1;
          if (kind === undefined && parent === root) features.add('service field');
          if (name.value === '__typename') features.add('__typename');
          if (name.value === '__typename' && parent?.name.endsWith('UpstreamPageInfo'))
            features.add('renamed type');
          if (name.value === 'totalCount') features.add('totalCount');
          if (alias) features.add('alias');
          const others = parent && 'getFields' in parent ? parent.getFields() : {};
          if (alias && alias.value !== name.value && alias.value in others)
            features.add('alias like another field');
        },
        leave: ({ name }) => {
          if (derived.has(`${types.getParentType()?.name}.${name.value}`)) drains -= 1;
        },
      },
      SelectionSet: ({ selections }) => {
        const keys = selections.flatMap((each) =>
          each.kind === Kind.FIELD && each.selectionSet ? [(each.alias ?? each.name).value] : [],
        );
        if (new Set(keys).size < keys.length) features.add('the same key twice');
      },
      InlineFragment: ({ typeCondition, directives = [] }) => {
        features.add(typeCondition ? 'inline fragment' : 'inline fragment without a type');
        if (directives.length > 0) features.add('condition of an inline fragment');
      },
      FragmentSpread: ({ name, directives = [] }) => {
        features.add('named fragment');
        if (directives.length > 0) features.add('condition of a fragment spread');
        if (spreads.has(name.value)) features.add('fragment used twice');
        spreads.add(name.value);
      },
      FragmentDefinition: ({ typeCondition }) => {
        const type = served.schema.getType(typeCondition.name.value);
        if (type && 'resolveType' in type) features.add('fragment on an interface or union');
      },
      VariableDefinition: ({ defaultValue }) => {
        features.add(defaultValue ? 'variable with a default' : 'variable');
      },
      Directive: ({ name, arguments: [condition] = [] }) => {
        features.add(
          `@${name.value} with a ${condition?.value.kind === Kind.VARIABLE ? 'variable' : 'literal'}`,
        );
      },
      Argument: ({ name, value }) => {
        if (value.kind === Kind.NULL) features.add('null');
        const isCursor =
          value.kind === Kind.STRING
            ? value.value
            : value.kind === Kind.VARIABLE
              ? variables[value.name.value]
              : '';
        if (typeof isCursor === 'string' && isCursor.startsWith('cursor of'))
          features.add(`cursor as ${/before/i.test(name.value) ? 'before' : 'after'}`);
        if (/^(last|connectionLast)$/.test(name.value)) features.add('last');
      },
    }),
  );
  for (const { path, extensions } of errors) {
    features.add('planted error');
    if (path?.some((step) => typeof step === 'number')) features.add('error in a list');
    if (extensions?.['result'] !== undefined) features.add('error member of a result');
  }
  return features;
}
