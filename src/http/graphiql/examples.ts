import { parse, print } from 'graphql';
import type { DescribedList } from '../../schema/describe-lists.ts';

export interface Example {
  /** Needs an operation name, which GraphiQL shows as the title of the tab. */
  readonly query: string;
  /** JSON text, as the variables editor shows it. */
  readonly variables?: string;
}

/**
 * Worked examples for the tabs: one list, in each of the forms in which it is served. A caller with the scope `read`
 * may send all of them.
 *
 * @param knownId the id of a record that exists
 */
export function examples(lists: readonly DescribedList[], knownId = '1'): readonly Example[] {
  const list =
    lists.find(({ all, connection }) => all && connection) ??
    lists.find(({ all, connection }) => all ?? connection) ??
    lists[0];
  if (!list) return [example(WELCOME, 'query Welcome { __typename }')];
  const similar = lists.filter((other) => other !== list).map(({ field }) => field);
  const made = [drained(list), paged(list, similar), forward(list), backward(list)];
  return [...made, oneRecord(list, knownId)]
    .filter((parts) => parts !== undefined)
    .map(([comment, query, variables], at) =>
      example(at === 0 ? `${WELCOME}\n\n${comment}` : comment, query, variables),
    );
}

type Parts = readonly [comment: string, query: string, variables?: object];

const WELCOME = `Welcome! Press the play button, or
Ctrl-Enter, to run this query. The icon at
the top left opens the documentation.`;

function drained({ all, selection }: DescribedList): Parts | undefined {
  return (
    all && [
      `${all.field} is the list in one answer,
sent as the pages of the service arrive.
For all of it, leave out ${all.limit}; above 500
records, a credential needs the scope "drain".`,
      `query ${titled(all.field)} { ${all.field}(${all.limit}: 500) @stream(initialCount: 50) { ${selection} } }`,
    ]
  );
}

function paged(list: DescribedList, similar: readonly string[]): Parts {
  const { field, after, selection, pageInfo, result } = list;
  const page = `items { ${selection} } pageInfo { ${pageInfo} }`;
  const members = [{ type: result?.success, selection: page }, ...(result?.failures ?? [])];
  const fragments = members.map((member) => `... on ${member.type} { ${member.selection} }`);
  const others = similar.length > 0 ? `\n\nSimilar lists: ${similar.slice(0, 5).join(', ')}.` : '';
  return [
    `${field} is the list as the service itself
serves it: page by page, forward only. For
the next page, add ${after}: "…" with the
endCursor of this one.${others}`,
    `query ${titled(field)} { ${field}(first: 2) { ${result ? `__typename ${fragments.join(' ')}` : page} } }`,
  ];
}

function forward({ connection, selection }: DescribedList): Parts | undefined {
  return (
    connection && [
      `${connection.field} is a Relay connection:
every edge has its own cursor, and first may
be more than a page of the service. totalCount
counts the whole list, and is then kept for
some minutes.

For the next edges, put the endCursor into
"after" in the variables below.`,
      `query ${titled(connection.field)}($first: Int, $after: String) {
        ${connection.field}(first: $first, ${connection.after}: $after) {
          totalCount
          edges { cursor node { ${selection} } }
          pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
        }
      }`,
      { first: 120, after: null },
    ]
  );
}

function backward({ field, connection, selection }: DescribedList): Parts | undefined {
  return (
    connection && [
      `The end of the list, which the service
itself cannot page to. For the edges in front
of these, add before: "…" with the startCursor.`,
      `query ${titled(connection.last)}${titled(field)} {
        ${connection.field}(${connection.last}: 3) {
          totalCount
          edges { cursor node { ${selection} } }
          pageInfo { hasPreviousPage startCursor }
        }
      }`,
    ]
  );
}

function oneRecord({ record, selection }: DescribedList, knownId: string): Parts | undefined {
  return (
    record && [
      `One record by its id. Copy an id from the
result of another tab into the variables below.
If no record has it, the answer is null.`,
      `query ${titled(record.field)}($id: ${record.idType}) { ${record.field}(${record.argument}: $id) { ${selection} } }`,
      { id: record.idType.startsWith('Int') ? 1 : knownId },
    ]
  );
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
