import { parse, print } from 'graphql';

export type Example = {
  /** Needs an operation name, which GraphiQL shows as the title of the tab. */
  readonly query: string;
  /** JSON text, as the variables editor shows it. */
  readonly variables?: string;
};

export type ExampleList = {
  /** The paged field of the service: `persons`. */
  readonly field: string;
  /** `allPersons`, if it is served. */
  readonly all?: string;
  /** `personsConnection`, if it is served. */
  readonly connection?: string;
  /** The fields to request of each record: `id firstName`. */
  readonly selection: string;
  /** The fields to request of the service's page information. */
  readonly pageInfo?: string;
};

/** Worked examples for the tabs: one list, in each of the forms in which it is served. */
export function examples(lists: readonly ExampleList[]): readonly Example[] {
  const list =
    lists.find(({ all, connection }) => all && connection) ??
    lists.find(({ all, connection }) => all || connection) ??
    lists[0];
  if (!list) return [welcome()];
  const others = lists.filter((other) => other !== list).map(({ field }) => field);
  return [
    list.all ? drained(list.all, list.selection) : welcome(),
    paged(list, others),
    ...(list.connection ? [connected(list.connection, list.selection)] : []),
  ];
}

/** The example for a schema without lists. */
function welcome(): Example {
  return example(
    'Welcome! Press the play button (or Ctrl-Enter) to run the query below. The icon at the top left opens the documentation.',
    'query Welcome { __typename }',
  );
}

function drained(all: string, selection: string): Example {
  return example(
    `Welcome! Press the play button (or Ctrl-Enter) to run the query below. The icon at the top left opens the documentation.

    ${all} is the whole list in one answer: the gateway reads the service's pages for you. The other tabs show the other ways to read it.`,
    `query ${capitalized(all)} { ${all} { ${selection} } }`,
  );
}

function paged({ field, selection, pageInfo }: ExampleList, others: readonly string[]): Example {
  return example(
    `${field} is the list as the service itself serves it: page by page, forward only. For the next page, add after: "…" with the endCursor of this one.

    ${others.length > 0 ? alsoServed(others) : ''}`,
    `query ${capitalized(field)} {
      ${field}(first: 2) {
        items { ${selection} }
        pageInfo { ${pageInfo ?? 'first hasNextPage endCursor'} }
      }
    }`,
  );
}

function alsoServed(others: readonly string[]): string {
  const more = others.length - 5;
  return `Similar lists: ${others.slice(0, 5).join(', ')}${more > 0 ? ` and ${more} more` : ''}.`;
}

function connected(connection: string, selection: string): Example {
  return example(
    `${connection} is a Relay connection: every edge has its own cursor, and first may be more than a page of the service.

    For the next edges, put the endCursor into "after" in the variables below.`,
    `query ${capitalized(connection)}($first: Int, $after: String) {
      ${connection}(first: $first, after: $after) {
        edges { cursor node { ${selection} } }
        pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
      }
    }`,
    { first: 120, after: null },
  );
}

function example(text: string, query: string, variables?: object): Example {
  return {
    query: `${comment(text)}\n\n${print(parse(query))}\n`,
    ...(variables && { variables: JSON.stringify(variables, null, 2) }),
  };
}

function comment(text: string): string {
  return text
    .trim()
    .split(/\n\s*\n/)
    .map((paragraph) => wrapped(paragraph).join('\n'))
    .join('\n#\n');
}

function wrapped(paragraph: string): string[] {
  const lines: string[] = [];
  let line = '#';
  for (const word of paragraph.trim().split(/\s+/)) {
    if (line !== '#' && line.length + 1 + word.length > editorColumns) {
      lines.push(line);
      line = '#';
    }
    line += ` ${word}`;
  }
  return [...lines, line];
}

// The width of the query editor on a laptop's screen, without its buttons.
const editorColumns = 50;

function capitalized(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
