import {
  buildSchema,
  graphql,
  NoSchemaIntrospectionCustomRule,
  parse,
  specifiedRules,
  validate,
} from 'graphql';
import { json, type Reply } from './fake-upstream.ts';

/** Answers introspection as a service with this schema does. */
export function introspected(sdl: string): Reply {
  const schema = buildSchema(sdl);
  return async (...exchange) => {
    const { query } = JSON.parse(exchange[1].body) as { query: string };
    await json(await graphql({ schema, source: query }))(...exchange);
  };
}

/** The same as a service of 2016, whose introspection refuses everything that was added since. */
export function introspectedAsIn2016(sdl: string): Reply {
  return async (...exchange) => {
    if (ADDED_SINCE.test(exchange[1].body)) {
      return json({ errors: [{ message: 'Cannot query that.' }] }, 400)(...exchange);
    }
    await introspected(sdl)(...exchange);
  };
}

const ADDED_SINCE =
  /specifiedByURL|isOneOf|isRepeatable|(args|inputFields)\(includeDeprecated|__schema \{\\n\s*description/;

/** The same as current graphql-java services, which allow each of these fields once in a document. */
export function introspectedInGoodFaith(sdl: string): Reply {
  return async (...exchange) => {
    const { query } = JSON.parse(exchange[1].body) as { query: string };
    const often = [
      '__schema',
      '__type',
      'fields',
      'inputFields',
      'interfaces',
      'possibleTypes',
    ].find((field) => (query.match(new RegExp(`(?<!\\w)${field}(?!\\w)`, 'g')) ?? []).length > 1);
    if (often === undefined) return introspected(sdl)(...exchange);
    const message = `This request is not asking for introspection in good faith - ${often} is present too often!`;
    await json({ errors: [{ message, extensions: { classification: 'BadFaithIntrospection' } }] })(
      ...exchange,
    );
  };
}

/** How a server words mistakes, from the words of graphql-js: its pattern, and what the server writes instead. */
type Words = readonly (readonly [RegExp, string])[];

interface Dialect {
  readonly words: Words;
  readonly maxErrors: number;
  readonly places: boolean;
}

const AS_IT_IS: Words = [];

const GRAPHQL_JAVA: Words = [
  [
    /^Cannot query field "(\w+)" on type "(\w+)".*/,
    "(FieldUndefined@[$1]) : Field '$1' in type '$2' is undefined",
  ],
  [
    /^Unknown argument "(\w+)" on field "\w+\.(\w+)".*/,
    "(UnknownArgument@[$2]) : Unknown field argument '$1'",
  ],
  [/^Unknown type "(\w+)".*/, "(UnknownType) : Unknown type '$1'"],
  [/^(Value|Boolean) .*/, "(BadValueForDefaultArg) : Bad default value 'it' for type 'it'"],
  [
    /^Variable "\$(\w+)" of type "(.+)" used in position expecting type "(.+)".*/,
    "(VariableTypeMismatch) : Variable '$1' of type '$2' used in position expecting type '$3'",
  ],
  [
    /^Fragment cannot be spread here as objects of type "(\w+)" can never be of type "(\w+)".*/,
    "(InvalidFragmentType) : Fragment cannot be spread here as objects of type '$1' can never be of type '$2'",
  ],
  [
    /^Field "(\w+)" argument "(\w+)" of type ".*" is required.*/,
    "(MissingFieldArgument@[$1]) : Missing field argument '$2'",
  ],
  [
    /^Field "(\w+)" is not defined by type "(\w+)".*/,
    "(WrongType) : argument 'it' with value 'it' contains a field not in '$2': '$1'",
  ],
];

const HOT_CHOCOLATE: Words = [
  [
    /^Cannot query field "(\w+)" on type "(\w+)".*/,
    'The field `$1` does not exist on the type `$2`.',
  ],
  [/^Unknown argument "(\w+)".*/, 'The argument `$1` does not exist.'],
  [/^Unknown type "(\w+)".*/, 'Unknown type `$1`.'],
  [
    /^(Value|Boolean) .*/,
    'The specified value type of variable `it` does not match the variable type.',
  ],
  [
    /^Variable "\$(\w+)" of type.*/,
    'The variable `$1` is not compatible with the type of the current location.',
  ],
  [
    /^Fragment cannot be spread.*/,
    'The parent type does not match the type condition on the fragment.',
  ],
  [/^Field "\w+" argument "(\w+)" of type ".*" is required.*/, 'The argument `$1` is required.'],
  [
    /^Field "(\w+)" is not defined by type.*/,
    'The specified input object field `$1` does not exist.',
  ],
];

const GRAPHQL_RUBY: Words = [
  [/^Cannot query field "(\w+)" on type "(\w+)".*/, "Field '$1' doesn't exist on type '$2'"],
  [/^Unknown argument "(\w+)" on field "\w+\.(\w+)".*/, "Field '$2' doesn't accept argument '$1'"],
  [/^Unknown type "(\w+)".*/, "No such type $1, so it can't be a fragment condition"],
  [/^(Value|Boolean) .*/, "Default value for $it doesn't match type It"],
  [
    /^Variable "\$(\w+)" of type "(.+)" used in position expecting type "(.+)".*/,
    'Type mismatch on variable $$$1 and argument it ($2 / $3)',
  ],
  [
    /^Fragment cannot be spread here as objects of type "(\w+)" can never be of type "(\w+)".*/,
    "Fragment on $2 can't be spread inside $1",
  ],
  [
    /^Field "(\w+)" argument "(\w+)" of type ".*" is required.*/,
    "Field '$1' is missing required arguments: $2",
  ],
  [
    /^Field "(\w+)" is not defined by type "(\w+)".*/,
    "InputObject '$2' doesn't accept argument '$1'",
  ],
  [
    /^Variable "\$(\w+)" is never used.*/,
    'Variable $$$1 is declared by anonymous query but not used',
  ],
];

/** Servers with closed introspection that list the mistakes of a document. */
export const DIALECTS = {
  'graphql-js': { words: AS_IT_IS, maxErrors: 100, places: true },
  'graphql-java': { words: GRAPHQL_JAVA, maxErrors: 100, places: true },
  'graphql-ruby': { words: GRAPHQL_RUBY, maxErrors: 100, places: true },
  'Hot Chocolate': { words: HOT_CHOCOLATE, maxErrors: 5, places: true },
  'a server that lists no lines': { words: AS_IT_IS, maxErrors: 100, places: false },
} satisfies Record<string, Dialect>;

/** Answers as a server without introspection: every document with a mistake is refused, with such words. */
export function validated(sdl: string, { words, maxErrors, places }: Dialect): Reply {
  const schema = buildSchema(sdl);
  return async (...exchange) => {
    const { query } = JSON.parse(exchange[1].body) as { query: string };
    const rules = [...specifiedRules, NoSchemaIntrospectionCustomRule];
    const errors = validate(schema, parse(query), rules, { maxErrors });
    if (errors.length === 0) return introspected(sdl)(...exchange);
    const listed = errors.map(({ message, locations }) => {
      const [pattern, form] = words.find(([each]) => each.test(message)) ?? [];
      const worded = pattern ? message.replace(pattern, form!) : message;
      const prefix = pattern && words === GRAPHQL_JAVA ? 'Validation error ' : '';
      return { message: `${prefix}${worded}`, ...(places ? { locations } : {}) };
    });
    await json({ errors: listed }, 400)(...exchange);
  };
}
