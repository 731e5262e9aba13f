import { createHash } from 'node:crypto';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { entryFor } from '../support/gateway/api-key.ts';
import { everyHook } from '../support/gateway/every-hook.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import type { GraphqlAnswer } from '../support/gateway/ask-at.ts';
import { startFullFront, type Front } from '../support/gateway/front.ts';

// Every request goes through a socket and through `fetch`, to a gateway without plugins, which answers it early, and to
// one with a plugin that has every hook, which sends it through the whole pipeline of Yoga. All four answers are equal.

const LISTED = 'https://people.example.com';
const UNLISTED = ['https://evil.example', `${LISTED}:8443`, 'http://localhost:5173', 'null'];
const READER = 'key-of-a-reader';
const WRITER = 'key-of-a-writer';
const GATE = 'key-of-the-router';
const MAX_BODY = 2_000;
/** It is neither in an answer nor in the log. */
const SECRET = 'somebody-private';
/** It is in the answer to its sender, and not in the log. */
const REPEATED = 'somebody-repeated';

const BY_ID = 'query ($id: Int!) { candidate(id: $id) { id } }';
const RENAME = 'mutation { rename(id: 1, name: "New") { name } }';
const TEXT = 'query Me { candidate(id: 7) { id } }';
const UNKNOWN = TEXT.replace('Me', 'Unknown');
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const HASH = sha256(TEXT);
const DOCUMENTS = {
  [HASH]: TEXT,
  pair: 'query One { me { id } } query Two { candidate(id: 7) { id } }',
  nameless: '{ me { id } }',
  variable: BY_ID,
  rename: RENAME,
};

const GUARDED: TestGatewayOptions['config'] = {
  auth: {
    apiKeys: [
      entryFor(READER, 'reader', 'read'),
      entryFor(WRITER, 'writer', 'write'),
      entryFor(GATE, 'gate', 'read', 'write', 'drain', 'router'),
    ],
    jwt: undefined,
  },
  corsOrigins: [LISTED],
  maxBodyBytes: MAX_BODY,
  maxDepth: 4,
  maxAliases: 2,
  maxTokens: 100,
  pagesPerMinute: 1_000,
  introspection: true,
  graphiql: true,
  mutations: 'all',
};

const GATEWAYS = {
  /** With every check enabled. */
  guarded: { config: GUARDED },
  /** Accepts trusted documents too. */
  listed: { config: GUARDED, trustedDocuments: DOCUMENTS },
  /** Accepts only trusted documents, from a manifest as Apollo writes it. */
  trusted: {
    config: { ...GUARDED, introspection: false, trustedDocumentsOnly: true },
    trustedDocuments: {
      format: 'apollo-persisted-query-manifest',
      version: 1,
      operations: Object.entries(DOCUMENTS).map(([id, body]) => ({
        id,
        body,
        name: 'Me',
        type: 'query',
      })),
    },
  },
  /** Accepts only trusted documents, and has none. */
  none: { config: { trustedDocumentsOnly: true } },
  /** Its callers need no credential, and most limits are the defaults. */
  open: { config: { introspection: false, mutations: 'off', maxAliases: 1 } },
  /** Tells its schema only to a router, and executes one mutation. */
  closed: { config: { ...GUARDED, introspection: false, mutations: ['hire'] } },
} satisfies Record<string, TestGatewayOptions>;

type Fronts = Record<keyof typeof GATEWAYS, Front>;
let plain: Fronts;
let hooked: Fronts;
const hooks: string[] = [];
beforeAll(async () => {
  plain = await startAll({});
  hooked = await startAll({ plugins: [everyHook((hook) => hooks.push(hook))] });
});
afterAll(async () => {
  for (const front of allFronts()) await front[Symbol.asyncDispose]();
});

const allFronts = () => [plain, hooked].flatMap((fronts) => Object.values(fronts));

async function startAll(options: TestGatewayOptions): Promise<Fronts> {
  const started = Object.entries(GATEWAYS).map(
    async ([name, given]) => [name, await startFullFront({ ...given, ...options })] as const,
  );
  return Object.fromEntries(await Promise.all(started)) as Fronts;
}

interface SentRequest {
  readonly to?: keyof typeof GATEWAYS;
  readonly method?: string;
  readonly path?: string;
  readonly host?: string;
  /** In addition to `DEFAULTS`; a header without a value is not sent. */
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
  /** Matches the message of the refusal. */
  readonly says?: RegExp;
}

interface Answered {
  readonly status: number;
  readonly headers: Record<string, unknown>;
  readonly text: string;
}

const query = (text: string, more: object = {}) => ({ body: { query: text, ...more } });
const inAddress = (text: string) => ({
  method: 'GET',
  path: `/graphql?query=${encodeURIComponent(text)}`,
});
const ME = query('{ me { id } }');
const SERVICE = query('{ _service { sdl } }');
const TWO = `query Look { me { id } } ${RENAME.replace('mutation', 'mutation Change')}`;
/** One of two operations is for routers. */
const LOOK_OR_SDL = 'query A { me { id } } query B { _service { sdl } }';
const asGate = { headers: { 'x-api-key': GATE } };
const asWriter = { headers: { 'x-api-key': WRITER } };
const anonymous = { 'x-api-key': '' };
/** A GET that has only these headers to tell that no page of another site has sent it. */
const onlyWith = (headers: Record<string, string>): SentRequest => ({
  to: 'open',
  ...inAddress('{ me { id } }'),
  headers: { ...anonymous, ...headers },
});
const many = (count: number, make: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => make(at)).join(' ');
const DOUBLED = '{ me { ...F0 } }';
/** Each fragment spreads the next one twice. */
const doubling = (levels: number, twice: (next: string) => string) =>
  `${DOUBLED} ${many(levels, (at) => `fragment F${at} on Candidate { ${twice(`...F${at + 1}`)} }`)} fragment F${levels} on Candidate { id }`;

type Row = readonly [name: string, sent: SentRequest, status: number, expected: unknown];
/** A text is that of an operation. */
type Sent = string | readonly [query: string, says: RegExp] | SentRequest;

function requestOf(sent: Sent, shared: SentRequest = {}): SentRequest {
  if (typeof sent === 'string') return { ...shared, ...query(sent) };
  if (!('length' in sent)) return { ...shared, ...sent };
  return { ...shared, ...query(sent[0]), says: sent[1] };
}

/** Makes a row of each request: they have one status, and one code, or none where the answer is not GraphQL. */
function refused(
  status: number,
  code: string | undefined,
  requests: Readonly<Record<string, Sent>>,
  shared: SentRequest = {},
): Row[] {
  return Object.entries(requests).map(([name, sent]) => [
    name,
    requestOf(sent, shared),
    status,
    code,
  ]);
}

/** Sends parameters as a POST and as a GET, to gateways that know trusted documents. */
function byId(
  name: string,
  body: object,
  to: readonly (keyof typeof GATEWAYS)[] = ['listed', 'trusted'],
): Record<string, SentRequest> {
  const parameters = Object.entries(body).map(([key, value]) => [
    key,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  const path = `/graphql?${new URLSearchParams(Object.fromEntries(parameters))}`;
  return Object.fromEntries(
    to.flatMap((each): [string, SentRequest][] => [
      [`${name}, in a body, ${each}`, { to: each, body }],
      [`${name}, in an address, ${each}`, { to: each, method: 'GET', path }],
    ]),
  );
}
const ofApollo = (sha256Hash: string) => ({
  extensions: { persistedQuery: { version: 1, sha256Hash } },
});
const WITH_TEXT = { query: UNKNOWN, ...ofApollo(sha256(UNKNOWN)) };

/** Each has a name that is similar to another one. */
const SIMILAR: Readonly<Record<string, Sent>> = {
  'a field': '{ candidatez { items { id } } }',
  'an input field in a variable': query('query ($a: VacancyBy!) { vacancyBy(by: $a) { id } }', {
    variables: { a: { idd: 1 } },
  }),
};
const RENAME_N = 'rename(id: 1, name: "N") { id }';

const preflightFrom = (origin: string): SentRequest => ({
  method: 'OPTIONS',
  headers: { ...(!origin ? {} : anonymous), origin, 'access-control-request-method': 'POST' },
});

const ofType = (type: string, body: unknown = SECRET) => ({
  headers: { 'content-type': type },
  body,
});

/** Refused before the service is asked. */
const REFUSED: readonly Row[] = [
  // Where the request comes from.
  ...refused(
    421,
    'FORBIDDEN',
    {
      'a foreign host name': ME,
      'a page under a foreign host name': { method: 'GET', headers: { accept: 'text/html' } },
      'OPTIONS under a foreign host name': { method: 'OPTIONS' },
      'a path that looks like a probe under a foreign host name': { path: '/health/', ...ME },
    },
    { host: 'evil.example', says: /the operator of the gateway adds it to ALLOWED_HOSTS/ },
  ),
  ...refused(404, undefined, {
    'an unknown path': { path: '/elsewhere', ...ME },
    'a path above': { path: '/', ...ME },
    'a path with a broken escape': { path: '/%zz', ...ME },
    'a path that ends like a probe': { path: '//evil/graphql?x=/health', ...ME },
  }),
  ...refused(401, 'UNAUTHENTICATED', {
    'no credential': { headers: anonymous, ...ME, says: /Send an API key from the operator/ },
    'an unknown API key': { headers: { 'x-api-key': 'unknown' }, ...ME },
    'no credential for an unknown path': { path: '/elsewhere', headers: anonymous, ...ME },
  }),
  // A page of another site can send these without asking, and cannot read the answers.
  ...['', ...UNLISTED].flatMap((origin, at) => {
    const site = at % 2 === 0 ? 'cross-site' : 'same-site';
    const sent = {
      headers: { 'sec-fetch-site': site, origin },
      says: /adds that origin to CORS_O/,
    };
    return refused(403, 'FORBIDDEN', {
      [`a POST from ${site} ${origin}`]: { ...sent, ...ME },
      [`a GET from ${site} ${origin}`]: { ...sent, ...inAddress('{ me { id } }') },
      ...(origin && { [`a preflight from ${origin}`]: { ...sent, ...preflightFrom(origin) } }),
    });
  }),
  ...Object.entries<Record<string, string>>({
    nothing: {},
    'plain text': { 'content-type': 'text/plain; a=application/json' },
    'a password that the browser remembers': { authorization: 'Basic YTpi' },
    'an origin': { origin: LISTED },
  }).flatMap(([name, headers]) =>
    refused(400, 'BAD_USER_INPUT', {
      [`a GET that any page can send, with ${name}`]: {
        ...onlyWith(headers),
        says: /"apollo-require-preflight: true"/,
      },
    }),
  ),
  // What form it has.
  ...refused(415, 'BAD_USER_INPUT', {
    'a form': ofType('application/x-www-form-urlencoded', 'query={me{id}}'),
    'a plain text': ofType('text/plain'),
    'a body without a type': ofType(''),
    'a charset that is not read': ofType('application/json; charset=iso-8859-1', ME.body),
  }),
  ...refused(413, 'BAD_USER_INPUT', { 'a large body': query('{ me { id } }'.padEnd(MAX_BODY)) }),
  ...refused(400, 'BAD_USER_INPUT', {
    'a body that is not UTF-8': {
      body: Buffer.from('{"query":"{ me { id } }","variables":{"name":"Jos\xe9"}}', 'latin1'),
    },
    'a body that is not JSON': { body: `{"query": "${SECRET}` },
    'a body of a string': { body: `"${SECRET}"` },
    'a body of null': { body: 'null' },
    'a body of a batch': {
      body: [{ query: '{ me { id } }' }, { query: SECRET }],
      says: /Batching is off: send each operation in its own request/,
    },
    'a body without a query': { body: { variables: { name: SECRET } } },
    'a query that is null': { body: { query: null } },
    'a query that is no text': { body: { query: { [SECRET]: SECRET } } },
    'variables that are a list': query('{ me { id } }', { variables: [SECRET] }),
    'variables that are a text': query('{ me { id } }', { variables: SECRET }),
    'an unknown parameter': query('{ me { id } }', { onError: 'NULL' }),
    'extensions that are a list': query('{ me { id } }', { extensions: [SECRET] }),
    'an address without a query': { method: 'GET' },
    'an address with broken variables': {
      method: 'GET',
      path: `/graphql?query={me{id}}&variables=${SECRET}`,
    },
  }),
  ...refused(405, 'BAD_USER_INPUT', {
    'the method PUT': { method: 'PUT', body: {} },
    'the method OPTIONS': { method: 'OPTIONS', body: {} },
    'OPTIONS of a page': { method: 'OPTIONS', headers: { origin: LISTED } },
    'OPTIONS of no page': preflightFrom(''),
    'a mutation in an address': inAddress(RENAME),
    'a trusted mutation in an address': {
      ...asWriter,
      to: 'trusted',
      method: 'GET',
      path: '/graphql?documentId=rename',
    },
  }),
  // What the operation is.
  ...refused(403, 'FORBIDDEN', {
    ...byId('a text of the manifest', { query: TEXT }, ['trusted', 'none']),
    ...byId('a text that is not parsed', { query: '{' }, ['trusted']),
    ...byId('neither an id nor a text', {}, ['trusted', 'none']),
    ...byId('a text beside an id', { query: '{ me { id } }', documentId: 'nameless' }, ['trusted']),
    ...byId('a text beside a hash', { query: UNKNOWN, ...ofApollo(HASH) }, ['trusted']),
    'a trusted mutation without the scope write': { to: 'trusted', body: { documentId: 'rename' } },
    'a mutation without the scope write': [RENAME, /scope "write"/],
    'a mutation that is selected': query(TWO, { operationName: 'Change' }),
    'a query without the scope read': { ...asWriter, ...ME, says: /scope "read"/ },
    'a query that is selected': { ...asWriter, ...query(TWO, { operationName: 'Look' }) },
    'an invalid query without the scope read': { ...asWriter, ...query('{ mee }'), says: /"read"/ },
    'fields of a router': [
      '{ _service { sdl } }',
      /^The field _service is for the router .* needs the scope "router"/,
    ],
    'fields of a router under an alias': '{ me: _service { sdl } }',
    'fields of a router in a fragment': '{ ...F } fragment F on Query { _service { __typename } }',
    'fields of a router in the selected operation': query(LOOK_OR_SDL, { operationName: 'B' }),
    'the SDL where no router has a credential': {
      to: 'open',
      ...SERVICE,
      says: /schema print --subgraph/,
    },
  }),
  ...refused(
    400,
    'PERSISTED_QUERY_NOT_FOUND',
    byId('an id that is not trusted', { documentId: 'x' }),
  ),
  // Apollo Client sends the text after these codes, and urql after these messages.
  ...refused(200, 'PERSISTED_QUERY_NOT_FOUND', byId('an unknown hash', ofApollo('a')), {
    says: /^PersistedQueryNotFound$/,
  }),
  ...refused(
    200,
    'PERSISTED_QUERY_NOT_SUPPORTED',
    byId('a hash where there are no documents', ofApollo(HASH), ['open', 'guarded']),
    { says: /^PersistedQueryNotSupported$/ },
  ),
  ...Object.entries(SIMILAR).flatMap(([name, sent]) => [
    ...refused(400, 'BAD_USER_INPUT', {
      [`${name} that is similar to another`]: { ...requestOf(sent), says: /Did you mean/ },
      [`${name} that is similar to one that is not told`]: {
        ...requestOf(sent),
        to: 'closed',
        says: /^(?!.*Did you mean)/,
      },
    }),
  ]),
  ...refused(400, 'BAD_USER_INPUT', {
    ...byId('neither an id nor a text', { variables: {} }, ['listed']),
    ...byId('no name for two operations', { documentId: 'pair' }),
    'a syntax error': '{',
    'an empty text': '',
    'a missing argument': '{ candidate { id } }',
    'only a fragment': 'fragment F on Query { me { id } }',
    'a subscription': 'subscription { hired { id } }',
    'one of two operations without a name': LOOK_OR_SDL,
    'a name that is no text': query('{ me { id } }', { operationName: {} }),
    'an unknown operation': {
      ...query(LOOK_OR_SDL, { operationName: 'C' }),
      says: /there is A, B\.$/,
    },
    'unknown fields, each named': ['{ nothing other }', /"nothing".*\n.*"other"/],
    'a reserved name': '{ me { _rs: id } }',
    'a variable with a reserved name':
      'query ($_rs: Boolean = true) { me { id @include(if: $_rs) } }',
    'another field as __typename': '{ me { __typename: id } }',
    'a missing variable': BY_ID,
    'a wrong variable': {
      ...query(BY_ID, { variables: { id: REPEATED } }),
      says: new RegExp(REPEATED),
    },
    'a variable that is a long integer': {
      body: `{"query":"${BY_ID}","variables":{"id":12345678901234567890}}`,
    },
    'a variable in an address that is a long integer': {
      method: 'GET',
      path: `/graphql?query=${encodeURIComponent(BY_ID)}&variables={"id":[-9007199254740993]}`,
      says: /^The integer -9007199254740993 has more digits/,
    },
    introspection: { to: 'open', ...query('{ __schema { types { name } } }') },
    'introspection by a router': {
      to: 'closed',
      ...asGate,
      ...query('{ __schema { __typename } }'),
    },
  }),
  ...refused(
    400,
    'BAD_USER_INPUT',
    {
      'overlapping fields in a fragment of the same name': [
        `{ me { ...A } } fragment A on Candidate { id } fragment A on Candidate { ${many(90, () => 'vacancy { id }')} }`,
        /There can be only one fragment named "A"/,
      ],
    },
    { to: 'open' },
  ),
  // How large it is. The next smaller one is answered.
  ...refused(400, 'OPERATION_TOO_COMPLEX', {
    tokens: [
      `{ me { ${'id '.repeat(96)} } }`,
      /^The document has more than 100 tokens .*MAX_TOKENS/,
    ],
    levels: [
      '{ me { ... on Candidate { vacancy { candidates { items { id } } } } } }',
      /^The operation is 5 levels deep; at most 4 .*MAX_DEPTH/,
    ],
    'levels below the second selection of a field': [
      '{ me { id } me { ... on Candidate { vacancy { candidates { items { id } } } } } }',
      / 5 levels/,
    ],
    aliases: {
      ...query('query A { me { a: id b: id c: id } } query B { me { id } }', {
        operationName: 'B',
      }),
      says: /^The operation has 3 aliases, .* 2 .*MAX_ALIASES/,
    },
    'aliases in a fragment that is spread twice': [
      '{ me { ...A } again: me { ...A } } fragment A on Named { a: id }',
      / 3 aliases, those of a fragment counted wherever it is spread/,
    ],
    'levels of another operation': query(
      `query A { me { id } } query B { me { ... on Candidate { vacancy { candidates { items { id } } } } } }`,
      { operationName: 'A' },
    ),
    'levels for a router': {
      ...asGate,
      ...query('{ candidate(id: 1) { vacancy { lead { vacancy { id } } } } }'),
    },
  }),
  ...refused(
    400,
    'OPERATION_TOO_COMPLEX',
    {
      'selections of one field': [`{ me { ${'id '.repeat(101)} } }`, /"id" is selected 101 times/],
      'selections of one field in fragments': [
        `{ me { ${many(120, (at) => `...F${at}`)} } } ${many(120, (at) => `fragment F${at} on Candidate { vacancy { id } }`)}`,
        /"vacancy" is selected 120 times/,
      ],
      'lists in lists': [
        `{ candidates(first: ${'['.repeat(5_000)}) { items { id } } }`,
        // Once the parser is optimized, its stack has room for all tokens that it may read.
        /nested too deeply|more than 2000 tokens/,
      ],
      'a fragment in itself': [
        '{ me { ...A } } fragment A on Candidate { friends { ...A } }',
        /more than 10000 fields, those of a fragment counted wherever it is spread/,
      ],
      'fragments that double each other': [
        doubling(40, (next) => `${next} vacancy { candidates { items { ${next} } } } ${next}`),
        /more than 10000 fields/,
      ],
      'fields of two operations': {
        ...query(
          doubling(11, (next) => `${next} ${next}`).replace(
            DOUBLED,
            `query A ${DOUBLED} query B ${DOUBLED}`,
          ),
          { operationName: 'A' },
        ),
        says: /^The document has more than 10000 fields/,
      },
    },
    { to: 'open' },
  ),
  ...refused(200, 'BAD_USER_INPUT', {
    'an operation that a caller of JSON has wrong': {
      headers: { accept: 'application/json' },
      ...query('{ nothing }'),
    },
  }),
  ...refused(200, 'CURSOR_INVALID', {
    'a cursor that is not one': '{ candidatesConnection(first: 1, after: "x") { nodes { id } } }',
  }),
  ...refused(200, 'FORBIDDEN', {
    'pages without the scope drain': `{ ${many(13, () => 'candidates { __typename }')} }`,
    'a mutation where they are off': { to: 'open', ...query(RENAME) },
  }),
  // Of those that MUTATIONS does not name, although their caller may write.
  ...refused(
    200,
    'FORBIDDEN',
    {
      'a mutation under the alias of an allowed one': `mutation { hire: ${RENAME_N} }`,
      'a mutation with @skip': `mutation { ... @skip(if: false) { ${RENAME_N.replace('{', '@skip(if: false) {')} } }`,
    },
    { to: 'closed', ...asGate },
  ),
];

type Answer = readonly [name: string, sent: Sent, part: string];

/** Makes a row of each request. Their answers have one text. */
function answered(part: string, requests: Readonly<Record<string, Sent>>): Answer[] {
  return Object.entries(requests).map(([name, sent]) => [name, sent, part]);
}

/** Answered with status 200, and with this text. */
const ANSWERED: readonly Answer[] = [
  ...answered('{"data":{"me":{"id":1}}}', {
    'a field of the service': ME,
    'a GET': inAddress('{ me { id } }'),
    'a POST from a listed origin': {
      headers: { 'sec-fetch-site': 'cross-site', origin: LISTED },
      ...ME,
    },
    'a POST from the page of GraphiQL': { headers: { 'sec-fetch-site': 'same-origin' }, ...ME },
    'a POST through a proxy that changes the host': {
      headers: { 'sec-fetch-site': 'same-origin', origin: 'http://localhost:5173' },
      ...ME,
    },
    'a GET with the header of Apollo': onlyWith({ 'apollo-require-preflight': 'true' }),
    'a GET with a bearer token': onlyWith({ authorization: 'Bearer a' }),
    'a GET of Apollo Kotlin': onlyWith({ 'x-apollo-operation-name': 'Me' }),
    'a GET with the type of JSON': onlyWith({ 'content-type': 'application/json; charset=utf-8' }),
    'an operation at the limit of tokens': `{ me { ${'id '.repeat(95)} } }`,
    // Yoga's own health check would answer this address.
    'an address that ends like a probe': { path: '/graphql?x=/health', ...ME },
    'a charset that is read': ofType('application/json;charset="UTF-8"', ME.body),
    'the path with a slash at its end': { path: '/graphql/', ...ME },
    'a POST that also accepts a page': {
      headers: { accept: 'application/json, text/html' },
      ...ME,
    },
    'a query beside a mutation, with the scope read alone': query(TWO, { operationName: 'Look' }),
    'parameters that are null, also an unknown one': query('{ me { id } }', {
      operationName: null,
      variables: null,
      extensions: null,
      onError: null,
    }),
    'an operation beside one of routers': query(LOOK_OR_SDL, { operationName: 'A' }),
  }),
  ...answered('{"data":{"candidate":{"id":7}}}', {
    ...byId('documentId', { documentId: HASH }),
    ...byId('the hash that Apollo sends', ofApollo(HASH)),
    ...byId('an id and the name of an operation', { documentId: 'pair', operationName: 'Two' }),
    ...byId('an id and variables', { documentId: 'variable', variables: { id: 7 } }),
    ...byId('an unknown hash and its text', WITH_TEXT, ['listed', 'open']),
    'a text of a router beside trusted documents': { to: 'trusted', ...asGate, ...query(TEXT) },
    'variables, and one of two operations': query(
      `query A { __typename } ${BY_ID.replace('query', 'query B')}`,
      { operationName: 'B', variables: { id: 7 } },
    ),
  }),
  // Its text is not kept.
  ...answered('PersistedQueryNotFound', {
    ...byId('the hash of a text that was sent', ofApollo(sha256(UNKNOWN)), ['listed']),
  }),
  ...answered('{"data":{"__typename":"Query"}}', {
    'a type name': '{ __typename }',
    'a long number that is no integer, and long digits in a text': {
      body: `{"query":"{ __typename }","variables":{"n":1.2345678901234567890,"t":"[12345678901234567890]"}}`,
    },
  }),
  ...answered('{"data":{"rename":{"name":"New"}}}', {
    'a mutation': { ...asGate, ...query(RENAME) },
    'a mutation with the scope write alone': {
      ...asWriter,
      ...query(TWO, { operationName: 'Change' }),
    },
  }),
  ...answered('@key', {
    'the SDL for a router': { ...asGate, ...SERVICE },
    'the SDL for a router, without introspection': { to: 'closed', ...asGate, ...SERVICE },
  }),
  [
    'fields of a router of which one is skipped',
    { ...asGate, ...query('{ _service { __typename sdl @skip(if: true) } }') },
    '{"data":{"_service":{"__typename":"_Service"}}}',
  ],
  [
    'levels and aliases at their limits',
    '{ a: me { ... on Candidate { vacancy { candidates { b: __typename } } } } }',
    '{"data":{"a":{"vacancy":{"candidates":{"b":"CandidatePage"}}}}}',
  ],
  [
    'entities under many aliases, of routers without a credential',
    {
      to: 'open',
      ...query(
        `{ ${many(3, (at) => `_${at}: _entities(representations: [{ __typename: "Candidate", id: 1 }]) { __typename }`)} }`,
      ),
    },
    '"_2":[{"__typename":"Candidate"}]',
  ],
  ['an error of the service', '{ failing me { id } }', '"data":{"failing":null,"me":{"id":1}}'],
  [
    'a drain that asks for a stream, from a caller that takes no parts',
    '{ allCandidates(limit: 2) @stream { id } }',
    '{"data":{"allCandidates":[{"id":1},{"id":2}]}}',
  ],
  [
    'a connection',
    '{ candidatesConnection(first: 1) { edges { node { id } } pageInfo { hasNextPage } } }',
    '{"edges":[{"node":{"id":1}}],"pageInfo":{"hasNextPage":true}}',
  ],
  ['introspection', '{ __type(name: "Robot") { name } }', '{"__type":{"name":"Robot"}}'],
  [
    'introspection of more levels than MAX_DEPTH',
    '{ __type(name: "Robot") { fields { type { ofType { ofType { name } } } } } }',
    '{"data":{"__type":{"fields"',
  ],
  [
    'the mutation that MUTATIONS names',
    {
      to: 'closed',
      ...asGate,
      ...query('mutation { hire(candidate: 2, vacancy: 1) { __typename } }'),
    },
    '{"data":{"hire":{"__typename":"Candidate"}}}',
  ],
  [
    'a probe under any host name',
    { method: 'GET', path: '/health', host: '10.1.2.3', headers: anonymous },
    '',
  ],
];

test.each(REFUSED)('%s is refused alike on every way', async (_, sent, status, code) => {
  const before = upstreamRequests();
  const answer = await answerOnEveryWay(sent);
  expect(answer.status).toBe(status);
  if (code !== undefined) {
    const { data, errors = [] } = JSON.parse(answer.text) as GraphqlAnswer;
    expect(new Set(errors.map(({ extensions }) => extensions.code))).toEqual(new Set([code]));
    expect(errors.map(({ message }) => message).join('\n')).toMatch(sent.says ?? /./);
    if (status !== 200) expect(data).toBeUndefined();
    expect(Object.values(data ?? {}).filter((value) => value !== null)).toEqual([]);
  }
  expect(answer.text).not.toContain(SECRET);
  expect(upstreamRequests()).toBe(before);
});

test('nothing of a refused request is logged', () => {
  for (const { logged } of allFronts()) {
    expect(JSON.stringify(logged)).not.toMatch(`${SECRET}|${REPEATED}`);
  }
});

test.each(ANSWERED)('%s is answered alike on every way', async (_, sent, part) => {
  const answer = await answerOnEveryWay(requestOf(sent));
  expect(answer.status).toBe(200);
  expect(answer.text).toContain(part);
});

test('the name of a trusted operation is logged and counted, and no other name', async () => {
  const { logged, gateway } = plain.listed;
  for (const [body, operation] of [
    [{ documentId: HASH }, 'Me'],
    [{ documentId: 'pair', operationName: 'Two' }, 'Two'],
    [{ documentId: 'nameless' }, 'nameless'],
    [{ documentId: 'pair', operationName: 'Mine' }, 'pair'],
    [{ documentId: 'Mine' }, undefined],
    [{ query: TEXT, operationName: 'Me' }, undefined],
  ] as const) {
    await throughFetch(plain.listed, { body });
    expect(logged.findLast(({ msg }) => msg === 'request')!['operation']).toBe(operation);
  }
  const metrics = await gateway.metrics.metrics();
  expect(metrics).toContain('{operation="nameless",code="OK"} 1');
  expect(metrics).not.toMatch(/operation="Mine"/);
});

test.each<[string, SentRequest, headers: Readonly<Record<string, string>>]>([
  ['a 405 lists the allowed methods', { method: 'PUT', body: {} }, { allow: 'GET, POST' }],
  ['a 405 for a mutation lists the other method', inAddress(RENAME), { allow: 'POST' }],
  [
    'no cache keeps the refusal of a caller',
    { headers: anonymous, ...inAddress('{ me { id } }') },
    { 'cache-control': 'no-store' },
  ],
  [
    'no cache keeps the refusal of a hash',
    { to: 'open', body: ofApollo(HASH) },
    { 'cache-control': 'no-store' },
  ],
  [
    'a page of a listed origin may send JSON and a credential',
    preflightFrom(LISTED),
    {
      'access-control-allow-methods': 'GET, POST',
      'access-control-allow-headers':
        'content-type, authorization, x-api-key, apollo-require-preflight, x-apollo-operation-name, ' +
        'graphql-client-name, graphql-client-version, apollographql-client-name, apollographql-client-version, ' +
        'x-request-id, traceparent, tracestate',
      'access-control-max-age': '7200',
    },
  ],
  [
    'a page of a listed origin may read what an answer says about itself',
    { headers: { origin: LISTED }, ...query('{ __typename }') },
    {
      'access-control-expose-headers': 'retry-after, www-authenticate, x-request-id',
      'cache-control': 'private, no-store',
      'content-type': 'application/graphql-response+json; charset=utf-8',
    },
  ],
])('%s, on every way', async (_, sent, headers) => {
  expect((await answerOnEveryWay(sent)).headers).toMatchObject(headers);
});

test('a request has a line in the log on every way', async () => {
  await answerOnEveryWay({ headers: { 'x-request-id': 'mine' }, ...query('{ __typename }') });
  for (const { guarded } of [plain, hooked]) {
    const lines = guarded.logged.filter(({ requestId }) => requestId === 'mine');
    const line = { status: 200, caller: 'reader', operationType: 'query' };
    expect(lines).toMatchObject([line, line]);
  }
});

/** The answer to a request, which is the same on all ways. */
async function answerOnEveryWay(sent: SentRequest): Promise<Answered> {
  const called = hooks.length;
  const to = sent.to ?? 'guarded';
  const early = comparable(await throughFetch(plain[to], sent));
  for (const [fronts, send] of [
    [plain, overSocket],
    [hooked, throughFetch],
    [hooked, overSocket],
  ] as const) {
    expect(comparable(await send(fronts[to], sent))).toEqual(early);
  }
  expect(hooks.slice(called)).toContain('onResponse');
  // Only pages of a listed origin may read answers and refusals. A cache keeps the answers to origins apart.
  const { config }: TestGatewayOptions = GATEWAYS[to];
  const mayRead = config?.corsOrigins && sent.headers?.['origin'] === LISTED;
  expect(early.headers['access-control-allow-origin']).toBe(mayRead ? LISTED : undefined);
  if (config?.corsOrigins) expect(early.headers['vary']).toContain('Origin');
  return early;
}

/** Without what is different for each request, and what HTTP has of its own. */
function comparable({ status, headers, text }: Answered): Answered {
  const { 'x-request-id': id, ...others } = headers;
  expect(id).toMatch(/^(?:[\w-]{36}|mine)$/);
  for (const name of ['connection', 'content-length', 'date', 'keep-alive', 'transfer-encoding']) {
    delete others[name];
  }
  return { status, headers: others, text };
}

/** The number of requests that have reached a service. */
function upstreamRequests(): number {
  return allFronts().reduce((sum, { service }) => sum + service.received.length, 0);
}

const DEFAULTS = {
  'content-type': 'application/json',
  accept: 'application/graphql-response+json',
  'x-api-key': READER,
};

function sendable({
  method = 'POST',
  path = '/graphql',
  host = 'localhost',
  headers,
  body,
}: SentRequest) {
  const isSafe = ['GET', 'OPTIONS', 'DELETE'].includes(method);
  const all = Object.entries({ ...DEFAULTS, ...headers }).filter(
    // A page cannot send a GET with the content type of JSON.
    ([name, value]) =>
      value !== '' && !(isSafe && name === 'content-type' && headers?.[name] === undefined),
  );
  const isText = typeof body === 'string' || Buffer.isBuffer(body);
  const text = isText ? (body as string | Buffer<ArrayBuffer>) : JSON.stringify(body);
  return { path, host, method, headers: Object.fromEntries(all), ...(!isSafe && { body: text }) };
}

async function throughFetch({ gateway }: Front, sent: SentRequest): Promise<Answered> {
  const { path, host, ...init } = sendable(sent);
  const response = await gateway.handler.fetch(new Request(`http://${host}${path}`, init));
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    text: await response.text(),
  };
}

async function overSocket({ url }: Front, sent: SentRequest): Promise<Answered> {
  const { path, host, headers, ...init } = sendable(sent);
  const response = await request(url + path, { ...init, headers: { ...headers, host } });
  return {
    status: response.statusCode,
    headers: response.headers,
    text: await response.body.text(),
  };
}
