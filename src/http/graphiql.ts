import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { parse, print } from 'graphql';
import type { Plugin } from 'graphql-yoga';

export type Example = {
  /** GraphiQL calls the tab after the operation, so give it a name. */
  readonly query: string;
  /** JSON text, as the variables editor shows it. */
  readonly variables?: string;
};

export type ExampleList = {
  /** The list as the service itself pages it: `persons`. */
  readonly field: string;
  /** `allPersons`, where it is served. */
  readonly all?: string;
  /** `personsConnection`, where it is served. */
  readonly connection?: string;
  /** What to ask of every record: `id firstName`. */
  readonly selection: string;
  /** What to ask of the service's own page information. */
  readonly pageInfo?: string;
};

export type GraphiqlOptions = {
  readonly enabled: boolean;
  readonly title?: string;
  readonly examples?: readonly Example[];
  /** Sent with every request that the page makes. Readable by everybody who opens it. */
  readonly headers?: Readonly<Record<string, string>>;
};

export type Graphiql = {
  readonly graphiql: false | ((request: Request) => boolean);
  readonly renderGraphiQL: () => Promise<string>;
  readonly plugin: Plugin;
};

/**
 * GraphiQL out of our own package: the page holds all of its code, styles, fonts and workers.
 * `graphiql` and `renderGraphiQL` are Yoga options; `plugin` adds the headers that keep the page
 * from asking anybody but this server.
 */
export function graphiql(options: GraphiqlOptions): Graphiql {
  const title = options.title ?? 'Recruiting';
  const page = once(() => render({ ...options, title }));
  const asked = new WeakSet<Request>();
  return {
    graphiql:
      options.enabled &&
      ((request) => {
        asked.add(request);
        return true;
      }),
    renderGraphiQL: async () => (await page()).html,
    plugin: {
      async onResponse(answer) {
        const { request, response, fetchAPI } = answer;
        if (!asked.has(request) || response.status !== 200) return;
        const { html, zipped, etag, policy } = await page();
        const headers = new fetchAPI.Headers(response.headers);
        for (const [name, value] of Object.entries(protection)) headers.set(name, value);
        headers.set('content-security-policy', policy);
        headers.set('content-type', 'text/html; charset=utf-8');
        headers.set('cache-control', 'private, no-cache');
        headers.set('etag', etag);
        headers.append('vary', 'Accept, Accept-Encoding');
        headers.delete('content-length'); // that of the body which is replaced here
        if (request.headers.get('if-none-match')?.includes(etag)) {
          answer.setResponse(new fetchAPI.Response(null, { status: 304, headers }));
        } else if (/\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(accepted(request))) {
          headers.set('content-encoding', 'gzip');
          answer.setResponse(new fetchAPI.Response(zipped, { status: 200, headers }));
        } else {
          answer.setResponse(new fetchAPI.Response(html, { status: 200, headers }));
        }
      },
    },
  };
}

/**
 * Worked examples for the tabs: one list, shown in each of the forms in which it is served.
 */
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

function welcome(): Example {
  return example(
    'Welcome! Press the play button (or Ctrl-Enter) to run the query below. The icon at the top left opens the documentation.',
    'query Welcome { __typename }',
  );
}

function drained(all: string, selection: string): Example {
  return example(
    `Welcome! Press the play button (or Ctrl-Enter) to run the query below. The icon at the top left opens the documentation.

    ${all} is the whole list in one answer: this server turns the service's pages for you. The other tabs show the other ways to read it.`,
    `query ${capitalized(all)} { ${all} { ${selection} } }`,
  );
}

function paged({ field, selection, pageInfo }: ExampleList, others: readonly string[]): Example {
  return example(
    `${field} is the list as the service itself has it: page by page, forward only. For the next page, add after: "…" with the endCursor of this one.

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
  return `Lists like it: ${others.slice(0, 5).join(', ')}${more > 0 ? ` and ${more} more` : ''}.`;
}

function connected(connection: string, selection: string): Example {
  return example(
    `${connection} is a Relay connection: every edge has its own cursor, and first may be more than a page of the service.

    To go on, put the endCursor into "after" in the variables below. For the way back there are last and before.`,
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

// What the query editor shows on a laptop's screen, left of its buttons.
const editorColumns = 50;

function capitalized(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}

type Page = { html: string; zipped: Buffer<ArrayBuffer>; etag: string; policy: string };

async function render(options: GraphiqlOptions & { title: string }): Promise<Page> {
  // Nine megabytes: loaded when somebody opens the page, not when the server starts.
  const parts = await import('@graphql-yoga/render-graphiql/graphiql');
  const title = asHtml(options.title);
  const scripts = [library(parts), start(options, title)];
  const html = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>${title}</title>
    <link rel="icon" href="${icon}" />
    <style>${parts.css}</style>
    <style>${layout}</style>
  </head>
  <body>
    <noscript>GraphiQL needs JavaScript.</noscript>
    <div id="root"></div>
    ${scripts.map((script) => `<script>${script}</script>`).join('\n    ')}
  </body>
</html>
`;
  return {
    html,
    zipped: await promisify(gzip)(html),
    etag: `"${sha256(html)}"`,
    policy: contentSecurityPolicy(scripts),
  };
}

function library(parts: typeof import('@graphql-yoga/render-graphiql/graphiql')): string {
  const { editorWorkerService, jsonWorker: json, graphqlWorker: graphql } = parts;
  return `
const workers = ${asScript({ editorWorkerService, json, graphql })};
self.MonacoEnvironment = {
  globalAPI: false,
  getWorkerUrl: (module, label) =>
    URL.createObjectURL(new Blob([workers[label]], { type: 'application/javascript' })),
};
${parts.js}`;
}

// Two corrections of the packaged page: it writes what is typed into the address, and so into access
// logs at the next reload, and it shares its storage, the tabs with it, with every other GraphiQL
// that was ever served from the same address.
function start(options: GraphiqlOptions & { title: string }, titleHtml: string): string {
  const settings = {
    title: titleHtml,
    defaultTabs: (options.examples?.length ? options.examples : [welcome()]).map((tab) => ({
      query: tab.query,
      variables: tab.variables ?? null,
    })),
    shouldPersistHeaders: false,
    additionalHeaders: options.headers ?? {},
  };
  return `
const prefix = ${asScript(`${options.title} `)};
const storage = {
  getItem: (key) => localStorage.getItem(prefix + key),
  setItem: (key, value) => localStorage.setItem(prefix + key, value),
  removeItem: (key) => localStorage.removeItem(prefix + key),
  clear() {
    for (const key of Object.keys(localStorage)) {
      if (key.startsWith(prefix)) localStorage.removeItem(key);
    }
  },
};
YogaGraphiQL.renderYogaGraphiQL(document.querySelector('#root'), {
  ...${asScript(settings)},
  storage,
  onEditQuery() {},
});
`;
}

const protection = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
};

// connect-src and img-src also stop a habit of GraphiQL: hovering over what looks like the path of a
// picture in a result fetches it, and with three slashes in front from any server it names.
function contentSecurityPolicy(scripts: readonly string[]): string {
  return [
    "default-src 'none'",
    `script-src ${scripts.map((script) => `'sha256-${sha256(script)}'`).join(' ')}`,
    'worker-src blob:',
    "style-src 'unsafe-inline'",
    'font-src data:',
    'img-src data:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

// The second rule keeps a tab where it is: whenever fonts or a new window size change the widths of
// the tabs, GraphiQL prepares to move them and does so under the next click, which then misses.
const layout = `
html, body, #root { height: 100%; margin: 0; }
.graphiql-tab { transform: none !important; }
`;

const icon = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="5" r="3.5" fill="#d60690"/><path d="M1 16a7 7 0 0 1 14 0z" fill="#d60690"/></svg>',
)}`;

function asHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** JSON that cannot end the script element it stands in. */
function asScript(value: unknown): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c');
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64');
}

function accepted(request: Request): string {
  return request.headers.get('accept-encoding') ?? '';
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}
