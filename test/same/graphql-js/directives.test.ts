import { buildSchema } from 'graphql';
import { sameAnswers, type Case } from '../side-by-side.ts';

const FRAGMENT = 'fragment Frag on Query { b c { d } }';
const PLACES = {
  'a field': (directives: string) => `a b ${directives}`,
  'an object': (directives: string) => `a c ${directives} { d }`,
  'a spread': (directives: string) => `a ...Frag ${directives}`,
  'an inline fragment': (directives: string) => `a ... on Query ${directives} { b c { d } }`,
  'an inline fragment without a type': (directives: string) => `a ... ${directives} { b c { d } }`,
  'a field below': (directives: string) => `a c { d ${directives} e }`,
  'the only field below': (directives: string) => `a c { d ${directives} }`,
  'the only field of all': (directives: string) => `a ${directives}`,
} as const;

const CONDITIONS = [
  '@include(if: %T)',
  '@include(if: %F)',
  '@skip(if: %T)',
  '@skip(if: %F)',
  '@include(if: %T) @skip(if: %F)',
  '@include(if: %T) @skip(if: %T)',
  '@skip(if: %F) @include(if: %F)',
] as const;

sameAnswers('@skip and @include', letters, [
  ...Object.entries(PLACES).flatMap(([place, selection]) =>
    CONDITIONS.flatMap((condition): Case[] => {
      const literal = condition.replaceAll('%T', 'true').replaceAll('%F', 'false');
      const variable = condition.replaceAll('%T', '$yes').replaceAll('%F', '$no');
      const fragment = place === 'a spread' ? FRAGMENT : '';
      return [
        [`${condition} on ${place}`, 'data', `{ ${selection(literal)} } ${fragment}`],
        [
          `${condition} on ${place}, by a variable`,
          'data',
          `query ${declared(variable)} { ${selection(variable)} } ${fragment}`,
          { variables: variablesFor(variable) },
        ],
      ];
    }),
  ),
  [
    'a field once skipped, once not',
    'data',
    '{ a @skip(if: true) a @include(if: true) c { d @skip(if: true) } c { e } }',
  ],
  ['a default of the condition', 'data', 'query ($yes: Boolean = true) { a @skip(if: $yes) b }'],
  ['without the condition', 'refused', '{ a @skip }'],
  [
    'a condition that is null',
    'refused',
    'query ($yes: Boolean!) { a @skip(if: $yes) }',
    { variables: { yes: null } },
  ],
  ['an unknown directive', 'refused', '{ a @unknown }'],
  ['a directive at a wrong place', 'refused', 'query @skip(if: true) { a }'],
]);

function declared(text: string): string {
  const names = Object.keys(variablesFor(text));
  return `(${names.map((name) => `$${name}: Boolean!`).join(', ')})`;
}

function variablesFor(text: string): Record<string, boolean> {
  return {
    ...(text.includes('$yes') && { yes: true }),
    ...(text.includes('$no') && { no: false }),
  };
}

function letters() {
  return {
    schema: buildSchema('type Query { a: String b: String c: C } type C { d: String e: String }'),
    service: { rootValue: { a: 'A', b: 'B', c: { d: 'D', e: 'E' } } },
  };
}
