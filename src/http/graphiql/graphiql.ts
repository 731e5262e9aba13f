import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Stage } from '../exchange.ts';
import { isGraphqlPath } from '../paths.ts';
import type { Reply } from '../reply.ts';
import type { Example } from './examples.ts';

/**
 * A field above GraphiQL for the caller's credential, which is then sent with the operations of all tabs and with the
 * request for the documentation. A header that is typed into a tab takes precedence.
 *
 * The credential exists only in the memory of the page: not in its storage or address, and, because the field is not
 * one for passwords and is not restored after a reload, not in those of the browser either.
 */
const BAR = `<div class="bar credential" data-state="missing">
      <label for="credential">Credential</label>
      <input id="credential" type="text" autocomplete="off" autocapitalize="off" spellcheck="false" />
      <output for="credential">This gateway answers only callers with an API key or a bearer token. Yours stays in the memory of this page.</output>
    </div>`;

/** Starts GraphiQL with the first credential that is accepted, because GraphiQL reads the schema when it starts. */
const START_WITH_CREDENTIAL = `
const bar = document.querySelector('.credential');
const field = bar.querySelector('input');
let isStarted = false;

field.addEventListener('change', take);
field.addEventListener('paste', () => setTimeout(take));

async function take() {
  const text = field.value.trim().replace(/^bearer +/i, '');
  delete credential.authorization;
  delete credential['x-api-key'];
  // The browser does not send a header with other characters at all.
  const isHeader = /^[!-~]*$/.test(text);
  if (isHeader && /^[^.]+[.][^.]+[.][^.]+$/.test(text)) credential.authorization = 'Bearer ' + text;
  else if (isHeader) credential['x-api-key'] = text;
  const headers = { ...credential, 'content-type': 'application/json' };
  const body = JSON.stringify({ query: '{ __typename }' });
  const why = await fetch(location.pathname, { method: 'POST', headers, body })
    .then((response) => response.json())
    .then(
      ({ errors }) => errors?.[0].message,
      () => 'The gateway does not answer. Try again.',
    );
  bar.dataset.state = why === undefined ? 'accepted' : 'refused';
  bar.querySelector('output').textContent = why ?? 'Sent with every request of this page. Gone when the page is closed or reloaded.';
  if (why !== undefined || isStarted) return;
  isStarted = true;
  startGraphiql();
}
`;

interface GraphiqlOptions {
  readonly needsCredential: boolean;
  /** Whether the page says that the people are made up. */
  readonly isSandbox?: boolean | undefined;
  readonly examples: readonly Example[];
}

/**
 * Serves GraphiQL to browsers, and leads them from the root to it. The page contains all of its code, styles, fonts and
 * workers, and its headers prevent it from sending requests to any other server.
 */
export function createGraphiql(options: GraphiqlOptions): Stage {
  let page: Promise<Reply> | undefined;
  return (exchange) => {
    const { method, path } = exchange;
    if (method !== 'GET' || !exchange.header('accept')?.includes('text/html')) return undefined;
    if (path === '/') return TO_PAGE;
    return isGraphqlPath(path) ? (page ??= render(options)) : undefined;
  };
}

// Relative, for proxies that serve the gateway under another path.
const TO_PAGE: Reply = { status: 302, headers: { location: 'graphql', vary: 'Accept' } };

const TITLE = 'Recruiting';
const MADE_UP =
  'This is the sandbox: the people are made up. To serve your recruiting service, start the gateway with RECRUITING_URL.';

async function render({ examples, needsCredential, isSandbox }: GraphiqlOptions): Promise<Reply> {
  // Nine megabytes, imported when the page is first opened, not when the server starts.
  const parts = await import('@graphql-yoga/render-graphiql/graphiql');
  const begin = needsCredential ? START_WITH_CREDENTIAL : 'startGraphiql();';
  const scripts = [library(parts), start(examples) + begin];
  const html = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>${TITLE}</title>
    <link rel="icon" href="data:," />
    <style>${parts.css}</style>
    <style>${style}</style>
  </head>
  <body>
    ${isSandbox ? `<p class="bar">${MADE_UP}</p>` : ''}
    ${needsCredential ? BAR : ''}
    <div id="root"></div>
    ${scripts.map((script) => `<script>${script}</script>`).join('\n    ')}
  </body>
</html>
`;
  const headers = {
    'content-security-policy': contentSecurityPolicy(scripts),
    'content-type': 'text/html; charset=utf-8',
    // Every browser accepts it.
    'content-encoding': 'gzip',
    vary: 'Accept',
  };
  return { status: 200, headers, body: await promisify(gzip)(html) };
}

function library(parts: typeof import('@graphql-yoga/render-graphiql/graphiql')): string {
  const { editorWorkerService, jsonWorker: json, graphqlWorker: graphql } = parts;
  return `
const workers = ${asScript({ editorWorkerService, json, graphql })};
self.MonacoEnvironment = {
  globalAPI: true,
  getWorkerUrl: (module, label) =>
    URL.createObjectURL(new Blob([workers[label]], { type: 'application/javascript' })),
};
${parts.js}`;
}

function start(examples: readonly Example[]): string {
  const settings = {
    title: TITLE,
    defaultTabs: examples.map(({ query, variables = null }) => ({ query, variables })),
    shouldPersistHeaders: false,
  };
  // The packaged page would write what is typed into the address, and so into access logs at the next reload.
  return `
const credential = {};

function startGraphiql() {
  YogaGraphiQL.renderYogaGraphiQL(document.querySelector('#root'), {
    ...${asScript(settings)},
    additionalHeaders: credential,
    onEditQuery() {},
  });
}
`;
}

// connect-src and img-src also prevent a request of GraphiQL: when the pointer is over something in a result that looks
// like the path of a picture, it fetches that picture, and with three slashes before it from any server.
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

// System colours follow the theme that was chosen in GraphiQL, or else the one of the browser, as GraphiQL does.
// The last rule keeps the tabs in their place: when fonts or the window size change their widths, GraphiQL prepares to
// move them, and moves them at the next click, which then misses its target.
const style = `
html, body { height: 100%; margin: 0; color-scheme: light dark; }
body { display: flex; flex-direction: column; }
body.graphiql-light { color-scheme: light; }
body.graphiql-dark { color-scheme: dark; }
#root { flex: 1; min-height: 0; }
#root .graphiql-container { height: 100%; }
.bar {
  display: flex; gap: 12px; align-items: center; margin: 0; padding: 8px 16px;
  font: 14px system-ui, sans-serif; color: CanvasText; background: Canvas; border-bottom: 1px solid GrayText;
}
.credential input { width: 22em; padding: 6px 8px; font: inherit; -webkit-text-security: disc; }
.credential[data-state='refused'] output { color: light-dark(#c4183c, #ff8a9f); }
.graphiql-tab { transform: none !important; }
`;

/** JSON that cannot end its script element. */
function asScript(value: unknown): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c');
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64');
}
