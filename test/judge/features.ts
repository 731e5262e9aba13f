import type { Answer } from './cursors.ts';
import type { Operation } from './operation.ts';
import type { World } from './world.ts';

/** How the generator writes parts of the language. */
const WRITTEN: readonly (readonly [feature: string, text: RegExp])[] = [
  ['totalCount', /\btotalCount\b/],
  ['last', /\b(?:last|connectionLast): /],
  ['cursor as after', /after: (?:"cursor of|\$)/i],
  ['cursor as before', /before: (?:"cursor of|\$)/i],
  ['__typename', /__typename/],
  ['alias', /\ba\d+: /],
  ['inline fragment', /\.\.\. on /],
  ['inline fragment without a type', /\.\.\. ?[{@]/],
  ['fragment used twice', /\.\.\.(F\d+)\b[^]*\.\.\.\1\b/],
  ['condition of a fragment spread', /\.\.\.F\d+ @/],
  ['condition of an inline fragment', /\.\.\.(?: on \w+)? @/],
  ['variable', /^query Random\(/],
  ['variable with a default', /\$\w+: [^,)]+ = /],
  ['null', /: null\b/],
  ['@skip with a literal', /@skip\(if: [tf]/],
  ['@skip with a variable', /@skip\(if: \$/],
  ['@include with a literal', /@include\(if: [tf]/],
  ['@include with a variable', /@include\(if: \$/],
];

export const FEATURES = [
  'all',
  'connection',
  'record',
  'entities',
  'nested all',
  'nested connection',
  ...WRITTEN.map(([feature]) => feature),
  'planted error',
  'error in a list',
  'error member of a result',
];

/** What an operation has of the language and of the served schema, and its answer of errors. */
export function featuresOf(
  { served }: World,
  { query }: Operation,
  { errors = [] }: Answer,
): Set<string> {
  const root = served.schema.getQueryType()!.name;
  const names = new Set(query.match(/\w+/g));
  const derived = served.derived
    .filter(({ name }) => names.has(name))
    .map(({ parent, kind }) => (parent === root ? kind : `nested ${kind}`));
  const written = WRITTEN.flatMap(([feature, text]) => (text.test(query) ? [feature] : []));
  const failed = errors.flatMap(({ path = [], extensions }) => [
    'planted error',
    ...(path.some((step) => typeof step === 'number') ? ['error in a list'] : []),
    ...(extensions?.['result'] === undefined ? [] : ['error member of a result']),
  ]);
  return new Set([...derived, ...written, ...failed]);
}
