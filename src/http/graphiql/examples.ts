import {
  getNamedType,
  isLeafType,
  isRequiredArgument,
  parse,
  print,
  type GraphQLNamedType,
} from 'graphql';
import { hasFields, type Adapter } from '../../schema/derived.ts';

export interface Example {
  /** Needs an operation name, which GraphiQL shows as the title of the tab. */
  readonly query: string;
  /** JSON text, as the variables editor shows it. */
  readonly variables?: string;
}

/**
 * Worked examples for the tabs: one list, in each of the forms in which it is served. A caller with the scope `read`
 * may send all of them.
 */
export function examples(adapters: readonly Adapter[]): readonly Example[] {
  // An example cannot guess the value of a filter.
  const list = adapters.find(({ reach, filters }) => !reach && !filters.some(isRequiredArgument));
  if (!list) return [example(WELCOME, 'query Welcome { __typename }')];
  return formsOf(list).map(([comment, query, variables], at) =>
    example(at === 0 ? `${WELCOME}\n\n${comment}` : comment, query, variables),
  );
}

const WELCOME = `Welcome! Press the play button, or
Ctrl-Enter, to run this query. The icon at
the top left opens the documentation.`;

type Form = readonly [comment: string, query: string, variables?: object];

function formsOf({ name, after, all, connection, nodeType, pageType, result }: Adapter): Form[] {
  const some = plainFields(nodeType).slice(0, FIELDS_SHOWN).join(' ') || '__typename';
  const pageInfo = plainFields(getNamedType(pageType.getFields()['pageInfo']!.type)).join(' ');
  const page = `items { ${some} } pageInfo { ${pageInfo} }`;
  const selection = result ? `__typename ... on ${pageType.name} { ${page} }` : page;
  const forms: Form[] = [
    [
      `${name} is the list as the service itself
serves it: page by page, forward only. For
the next page, add ${after.name}: "…" with the
endCursor of this one.`,
      `query ${titled(name)} { ${name}(first: 2) { ${selection} } }`,
    ],
  ];
  if (all) {
    forms.unshift([
      `${all.field} is the list in one answer,
sent as the pages of the service arrive.
For all of it, leave out limit; above 500
records, a credential needs the scope "drain".`,
      `query ${titled(all.field)} { ${all.field}(limit: 500) @stream { ${some} } }`,
    ]);
  }
  if (connection) {
    const { field } = connection;
    forms.push([
      `${field} is a Relay connection:
every edge has its own cursor, and first may
be more than a page of the service. With last
and before, it is paged from its end, which the
service itself cannot do. totalCount counts the
whole list, and is then kept for some minutes.

For the next edges, put the endCursor into
"after" in the variables below.`,
      `query ${titled(field)}($first: Int, $after: String) {
        ${field}(first: $first, after: $after) {
          totalCount
          edges { cursor node { ${some} } }
          pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
        }
      }`,
      { first: 120, after: null },
    ]);
  }
  return forms;
}

const FIELDS_SHOWN = 3;

/** The names of the fields that need neither a selection nor an argument. */
function plainFields(type: GraphQLNamedType): string[] {
  return Object.values(hasFields(type) ? type.getFields() : {})
    .filter((field) => isLeafType(getNamedType(field.type)) && !field.args.some(isRequiredArgument))
    .map(({ name }) => name);
}

function example(comment: string, query: string, variables?: object): Example {
  return {
    query: `${comment.replaceAll(/^/gm, '# ')}\n\n${print(parse(query))}\n`,
    ...(variables && { variables: JSON.stringify(variables, null, 2) }),
  };
}

function titled(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
