import { parse, print } from 'graphql';

export type Example = {
  /** Needs an operation name, which GraphiQL shows as the title of the tab. */
  readonly query: string;
  /** JSON text, as the variables editor shows it. */
  readonly variables?: string;
};

type ExampleList = {
  /** The paged field of the service: `persons`. */
  readonly field: string;
  /** Its argument with the cursor. Default: `after`. */
  readonly after?: string;
  /** `allPersons`, if it is served, and its argument. */
  readonly all?: { readonly field: string; readonly limit: string };
  /** `personsConnection`, if it is served, and its argument. */
  readonly connection?: {
    readonly field: string;
    readonly after: string;
    readonly last: string;
  };
  /** Where a page is one type of a result. */
  readonly result?: ExampleResult;
  /** How one of its records is found by its id, if it is. */
  readonly entity?: ExampleEntity;
  /** The fields to request of each record: `id firstName`. */
  readonly selection: string;
  /** The fields to request of the service's page information. */
  readonly pageInfo?: string;
};

type ExampleEntity = {
  readonly type: string;
  /** `person`, if it is served. */
  readonly field?: string | undefined;
  readonly argument: string;
  /** The type of the argument: `ID!`. */
  readonly idType: string;
  /** The field of the service that returns a result, of which the record is one type. */
  readonly byResult?: ExampleResult & {
    readonly field: string;
    readonly argument: string;
    readonly idType: string;
  };
};

/** A union or interface of a type and of errors, each with the fields to request of it. */
type ExampleResult = {
  readonly success: string;
  readonly failures: readonly { readonly type: string; readonly selection: string }[];
};

/**
 * Worked examples for the tabs: one list, in each of the forms in which it is served. A caller with the scope `read`
 * may send all of them.
 *
 * @param isRouterOnly whether `_entities` is only for routers
 * @param knownId the id of a record that exists
 */
export function examples(
  lists: readonly ExampleList[],
  {
    isRouterOnly = false,
    knownId = '1',
  }: { readonly isRouterOnly?: boolean; readonly knownId?: string | undefined } = {},
): readonly Example[] {
  const list =
    lists.find(({ all, connection }) => all && connection) ??
    lists.find(({ all, connection }) => all || connection) ??
    lists[0];
  if (!list) return [welcome()];
  const others = lists.filter((other) => other !== list).map(({ field }) => field);
  const { all, connection, entity, selection } = list;
  const withResult = [list, ...lists].find((each) => each.entity?.byResult);
  return [
    all ? drained(all, selection) : welcome(),
    paged(list, others),
    ...(connection
      ? [forward(connection, selection), backward(list.field, connection, selection)]
      : []),
    ...(entity?.field === undefined ? [] : [record(entity.field, entity, selection, knownId)]),
    ...(withResult?.entity?.byResult
      ? [orError(withResult.entity.byResult, withResult.selection, knownId)]
      : []),
    ...(entity && !isRouterOnly ? [entityLookup(entity, selection, knownId)] : []),
  ];
}

/** The example for a schema without lists. */
function welcome(): Example {
  return example(
    'Welcome! Press the play button (or Ctrl-Enter) to run this query. The icon at the top left opens the documentation.',
    'query Welcome { __typename }',
  );
}

function drained({ field, limit }: NonNullable<ExampleList['all']>, selection: string): Example {
  return example(
    `Welcome! Press the play button (or Ctrl-Enter) to run this query. The icon at the top left opens the documentation.

    ${field} is the list in one answer, sent as the pages of the service arrive. For all of it, leave out ${limit}; above 500 records, a credential needs the scope "drain".`,
    `query ${capitalized(field)} { ${field}(${limit}: 500) @stream(initialCount: 50) { ${selection} } }`,
  );
}

function paged(
  { field, after = 'after', selection, pageInfo, result }: ExampleList,
  others: readonly string[],
): Example {
  const page = `items { ${selection} } pageInfo { ${pageInfo ?? 'first hasNextPage endCursor'} }`;
  return example(
    `${field} is the list as the service itself serves it: page by page, forward only. For the next page, add ${after}: "…" with the endCursor of this one.

    ${others.length > 0 ? alsoServed(others) : ''}`,
    `query ${capitalized(field)} {
      ${field}(first: 2) { ${result ? members(result, page) : page} }
    }`,
  );
}

function alsoServed(others: readonly string[]): string {
  const more = others.length - 5;
  return `Similar lists: ${others.slice(0, 5).join(', ')}${more > 0 ? ` and ${more} more` : ''}.`;
}

function forward(
  { field, after }: NonNullable<ExampleList['connection']>,
  selection: string,
): Example {
  return example(
    `${field} is a Relay connection: every edge has its own cursor, and first may be more than a page of the service. totalCount counts the whole list, and is then kept for some minutes.

    For the next edges, put the endCursor into "after" in the variables below.`,
    `query ${capitalized(field)}($first: Int, $after: String) {
      ${field}(first: $first, ${after}: $after) {
        totalCount
        edges { cursor node { ${selection} } }
        pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
      }
    }`,
    { first: 120, after: null },
  );
}

function backward(
  list: string,
  { field, last }: NonNullable<ExampleList['connection']>,
  selection: string,
): Example {
  return example(
    'The end of the list, which the service itself cannot page to. For the edges in front of these, add before: "…" with the startCursor.',
    `query ${capitalized(last)}${capitalized(list)} {
      ${field}(${last}: 3) {
        totalCount
        edges { cursor node { ${selection} } }
        pageInfo { hasPreviousPage startCursor }
      }
    }`,
  );
}

function record(
  field: string,
  { argument, idType }: ExampleEntity,
  selection: string,
  knownId: string,
): Example {
  return example(
    'One record by its id. Copy an id from the result of another tab into the variables below. If no record has it, the answer is null.',
    `query ${capitalized(field)}($id: ${idType}) { ${field}(${argument}: $id) { ${selection} } }`,
    { id: exampleId(idType, knownId) },
  );
}

function orError(
  { field, argument, idType, ...result }: NonNullable<ExampleEntity['byResult']>,
  selection: string,
  knownId: string,
): Example {
  return example(
    `${field} is what the service itself returns for an id: ${result.success}, or an error that says why there is none. __typename says which. Change the id in the variables below to see an error.`,
    `query ${capitalized(field)}OrError($id: ${idType}) {
      ${field}(${argument}: $id) { ${members(result, selection)} }
    }`,
    { id: exampleId(idType, knownId) },
  );
}

function members({ success, failures }: ExampleResult, selection: string): string {
  const fragments = [{ type: success, selection }, ...failures].map(
    (member) => `... on ${member.type} { ${member.selection} }`,
  );
  return `__typename ${fragments.join(' ')}`;
}

function entityLookup(
  { type, idType }: ExampleEntity,
  selection: string,
  knownId: string,
): Example {
  return example(
    'What the router of a supergraph sends: records by their ids, in the order of the representations. Copy an id from the result of another tab into the variables below.',
    `query Entities($id: ${idType}) {
      _entities(representations: [{ __typename: "${type}", id: $id }]) {
        __typename
        ... on ${type} { ${selection} }
      }
    }`,
    { id: exampleId(idType, knownId) },
  );
}

function exampleId(idType: string, knownId: string): string | number {
  return idType.startsWith('Int') ? 1 : knownId;
}

function example(text: string, query: string, variables?: object): Example {
  return {
    query: `${comment(text)}\n\n${print(parse(query)).split('\n').map(inColumns).join('\n')}\n`,
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

// The width of the query editor on the screen of a laptop, without its buttons.
const editorColumns = 42;

/** Breaks a line of an operation, which may have arguments and a directive, as far as its names fit. */
function inColumns(line: string): string {
  if (line.length <= editorColumns) return line;
  const indent = /^ */.exec(line)![0];
  const directive = line.indexOf(' @', indent.length);
  if (directive >= 0) {
    return [line.slice(0, directive), `${indent}  ${line.slice(directive + 1)}`]
      .map(inColumns)
      .join('\n');
  }
  const [brackets] = /[([{]+/.exec(line) ?? [];
  if (brackets === undefined) return line;
  const from = line.indexOf(brackets) + brackets.length;
  const to = line.search(new RegExp(`[)\\]}]{${brackets.length}}[^)\\]}]*$`));
  if (to < from) return line;
  const parts = line
    .slice(from, to)
    .trim()
    .split(/, (?![^([{]*[)\]}])/);
  const inside = parts.map((part) => inColumns(`${indent}  ${part}`));
  return [line.slice(0, from), ...inside, indent + line.slice(to)].join('\n');
}

function capitalized(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
