import { OperationTypeNode, type DocumentNode, GraphQLError, type GraphQLSchema } from 'graphql';
import type { Clock } from '../clock.ts';
import type { CallVariables } from '../engine/call.ts';
import { codedError, badRequest, forbidden } from '../errors.ts';
import {
  BodiesTooLarge,
  BodyTooLarge,
  noRoom,
  type BodyLimits,
  type ByteLimit,
} from '../memory/byte-limit.ts';
import { tooComplex } from '../operations/limits.ts';
import type { CheckedOperation, Operations } from '../operations/operations.ts';
import type { TrustedDocument } from '../operations/trusted-documents.ts';
import { coerceVariables, parseSent } from '../operations/variables.ts';
import { enforceScopes } from '../schema/field-scopes.ts';
import { readText } from './body.ts';
import { CALLER_LEFT, type Exchange, type Stage } from './exchange.ts';
import { InFlight } from './in-flight.ts';
import { createLoopTurns, type TakeTurn } from './loop-turns.ts';

/** The parameters of a GraphQL request as they were sent, unchecked. */
export type Params = Readonly<Record<string, unknown>>;

/** An operation that somebody asks for. */
export interface Asked<Plan = unknown> {
  readonly exchange: Exchange;
  readonly operation: CheckedOperation<Plan>;
}

/** Refuses an operation by throwing. */
export type Check = (asked: Asked) => void;

export type Checks = readonly (Check | undefined)[];

interface OperationParts<Plan> {
  readonly operations: Operations<Plan>;
  /** The served schema. */
  readonly schema: GraphQLSchema;
  readonly introspection: boolean;
  readonly maxBodyBytes: number;
  /** The most requests that have arrived and are not yet answered. */
  readonly maxRequests: number;
  /** Counts their bodies. */
  readonly bodies: ByteLimit;
  /** By their ids; undefined: there are no trusted documents. */
  readonly trusted: ReadonlyMap<string, TrustedDocument> | undefined;
  /** Whether all other operations are refused, except for routers. */
  readonly trustedDocumentsOnly: boolean;
  readonly isRouter: (exchange: Exchange) => boolean;
  readonly clock: Clock;
}

/** The steps of an operation, in their order. Each gets what those before it have found. */
export function createOperationStages<Plan>(parts: OperationParts<Plan>) {
  const { operations, schema, introspection, isRouter } = parts;
  const inFlight = new InFlight(parts.maxRequests, parts.bodies);
  return {
    /** Refuses other methods than POST and GET. */
    knownMethod: (({ method }) => {
      if (method !== 'POST' && method !== 'GET') throw otherMethod();
      return undefined;
    }) satisfies Stage,

    /** Reads the parameters of the request. */
    readParams: readParams(parts, inFlight),

    /** Replaces the id of a trusted document by its text. */
    trustedDocuments: trustedDocuments(parts),

    /** Refuses parameters that a GraphQL request does not have. */
    checkParams,

    /** Parses the operation, or finds it among the operations that were compiled before. */
    find: (exchange: Exchange, query: unknown, operationName: unknown): CheckedOperation<Plan> => {
      const operation =
        typeof query === 'string'
          ? operations.find(query, operationName)
          : operations.findDocument(query as DocumentNode, operationName);
      if (operation.type === OperationTypeNode.MUTATION && exchange.method !== 'POST') {
        throw mutationInAddress();
      }
      return operation;
    },

    /** Refuses an operation above MAX_DEPTH, MAX_ALIASES or MAX_TOKENS. */
    enforceLimits: (({ exchange, operation: { excess } }) => {
      if (excess === 'broken' || excess.length === 0) return;
      const tooMuch = isRouter(exchange)
        ? excess.filter(({ isAllowedForRouters }) => !isAllowedForRouters)
        : excess;
      if (tooMuch.length === 0) return;
      throw tooComplex(tooMuch.map(({ message }) => message).join(' '));
    }) satisfies Check,

    /** Refuses `_service { sdl }` if introspection is off, unless the caller is a router. */
    concealSdl: (({ exchange, operation }) => {
      if (introspection || !operation.routerFields.includes('_service')) return;
      if (!isRouter(exchange)) throw forbidden(CONCEALED);
    }) satisfies Check,

    /** Refuses an operation that is not valid against the schema. */
    refuseInvalid: (({ operation }) => {
      const errors = operation.errors();
      if (errors.length > 0) throw new AggregateError(errors);
      // Validation does not report a missing root type: without one it knows none of the fields.
      if (!schema.getRootType(operation.type)) throw withoutRootType(operation.type);
    }) satisfies Check,

    /** Refuses an operation with a field whose scope the caller lacks. */
    enforceFieldScopes: (({ exchange, operation }) => {
      enforceScopes(operation.scopedUses, exchange.caller);
    }) satisfies Check,

    coerceVariables: ({ exchange, operation }: Asked<Plan>, variables: unknown): CallVariables => {
      // From here on, telemetry counts the request as an executed operation.
      exchange.notes.operationType = operation.type;
      const sent = (variables ?? {}) as Record<string, unknown>;
      const coerced = coerceVariables(operation, sent, { schema, hideSuggestions: !introspection });
      // All that is kept of the body while the operation waits for the service.
      inFlight.hold(exchange, JSON.stringify(coerced.sent).length);
      return coerced;
    },
  };
}

/**
 * Reads operations from a JSON body, or from the address of a GET. Forms are not accepted: a page of any site can make a
 * browser send one, even with a mutation, without the preflight that CORS requires for JSON.
 */
function readParams<Plan>(
  { maxBodyBytes, bodies, clock }: OperationParts<Plan>,
  inFlight: InFlight,
) {
  const takeTurn = createLoopTurns(clock);

  return async (exchange: Exchange): Promise<Params> => {
    const isPost = exchange.method === 'POST';
    if (isPost) checkBody(exchange, maxBodyBytes);
    else checkAddress(exchange, maxBodyBytes);
    const enter = () => {
      inFlight.enter(exchange);
      return takeTurn();
    };
    if (isPost)
      return paramsIn(await readWithin(exchange, { each: maxBodyBytes, all: bodies }, enter));
    await enter();
    if (exchange.hasLeft) throw CALLER_LEFT;
    return paramsInAddress(exchange.inbound.query);
  };
}

async function readWithin(
  exchange: Exchange,
  limits: BodyLimits,
  takeTurn: TakeTurn,
): Promise<string> {
  try {
    return await readText(exchange, limits, takeTurn);
  } catch (error) {
    if (error instanceof BodyTooLarge) throw tooLarge(limits.each);
    if (error instanceof BodiesTooLarge) throw noRoom();
    throw error;
  }
}

/** @throws GraphQLError if the headers alone are a reason to refuse the request */
function checkBody(exchange: Exchange, maxBytes: number): void {
  const type = exchange.header('content-type') ?? '';
  if (type !== 'application/json') {
    const isJson = /^application\/json\s*([;,]|$)/i.test(type);
    const [, charset = 'utf-8'] = /;\s*charset\s*=\s*"?([^\s";,]*)/i.exec(type) ?? [];
    if (!isJson || !/^utf-?8$/i.test(charset)) throw refused(415, OTHER_TYPE);
  }
  const encoding = exchange.header('content-encoding') ?? 'identity';
  if (encoding.toLowerCase() !== 'identity') {
    // In an answer, this header lists the accepted encodings of requests (RFC 9110, 12.5.3).
    const accepted = { 'accept-encoding': 'identity' };
    throw refused(
      415,
      'The content-encoding of this request is not supported. Send the body without one.',
      accepted,
    );
  }
  if (Number(exchange.header('content-length')) > maxBytes) throw tooLarge(maxBytes);
}

const OTHER_TYPE =
  'The content-type of this request is not supported. Send the operation as JSON in UTF-8, with "content-type: application/json".';

function paramsIn(text: string): Params {
  let json: unknown;
  try {
    json = parseSent(text);
  } catch (error) {
    if (error instanceof GraphQLError) throw error;
    // Not the message of the parser, which contains a piece of the body.
    throw refused(400, 'The body is not valid JSON. Send a JSON object with a "query".');
  }
  if (Array.isArray(json)) {
    throw refused(
      400,
      'Batching is off. Send each operation in its own request: in Apollo Client, with HttpLink instead of BatchHttpLink.',
    );
  }
  if (typeof json !== 'object' || json === null) {
    throw refused(400, 'The body is not a JSON object. Send one with a "query".');
  }
  return json as Params;
}

/** The limit of a body applies to an address too. */
function checkAddress({ inbound: { path, query } }: Exchange, maxBytes: number): void {
  if (path.length + query.length > maxBytes) {
    throw refused(
      414,
      `The address is longer than ${maxBytes} characters. Use POST, or request less.`,
    );
  }
}

function paramsInAddress(query: string): Params {
  const params = new URLSearchParams(query);
  const text = (name: string) => params.get(name) || undefined;
  const json = (name: string): unknown => {
    const value = text(name);
    return value === undefined ? undefined : parseSent(value);
  };
  try {
    return {
      operationName: text('operationName'),
      query: text('query'),
      variables: json('variables'),
      extensions: json('extensions'),
    };
  } catch (error) {
    if (error instanceof GraphQLError) throw error;
    throw refused(
      400,
      'The variables or the extensions in the address are not valid JSON. Correct them, or use POST.',
    );
  }
}

function otherMethod(): GraphQLError {
  return refused(
    405,
    'This method is not supported. Send the operation with POST, or a query with GET.',
    { Allow: 'GET, POST' },
  );
}

function tooLarge(maxBytes: number): GraphQLError {
  const message = `The request is larger than ${maxBytes} bytes. Send each value only once, in variables, or split the request; the operator of this gateway can raise MAX_BODY_BYTES.`;
  return refused(413, message, { connection: 'close' });
}

function refused(status: number, message: string, headers: Record<string, string> = {}) {
  return codedError('BAD_USER_INPUT', message, { extensions: { http: { status, headers } } });
}

/**
 * Accepts operations by their ids in the operator's manifest. A request never registers one: clients that try automatic
 * persisted queries get an error that says so, and send the text.
 */
function trustedDocuments({
  trusted,
  trustedDocumentsOnly,
  isRouter,
}: Pick<OperationParts<unknown>, 'trusted' | 'trustedDocumentsOnly' | 'isRouter'>) {
  return (exchange: Exchange, params: Params): Params => {
    const { query, operationName, variables, extensions } = params;
    if (query) {
      if (trusted && trustedDocumentsOnly && !isRouter(exchange)) throw forbidden(UNTRUSTED);
      return params;
    }
    const hash = hashOf(params);
    if (!trusted) {
      if (hash !== undefined) throw notPersisted('PERSISTED_QUERY_NOT_SUPPORTED');
      return params;
    }
    const id = idOf(exchange, params);
    if (id === undefined && hash === undefined) {
      throw badRequest(
        'The request has neither a "query" nor the id of a trusted document. Send a "query" or a "documentId".',
      );
    }
    const document = find(trusted, id ?? hash!);
    if (!document) {
      if (id === undefined) throw notPersisted('PERSISTED_QUERY_NOT_FOUND');
      throw codedError(
        'PERSISTED_QUERY_NOT_FOUND',
        'No trusted document has this id. The operator of this gateway adds documents to its manifest, which is read at the start; a request cannot register them.',
        { extensions: { http: { status: 400 } } },
      );
    }
    // Not the id as it was sent, which metrics would keep: in a GET, it is part of a long address.
    exchange.notes.trustedName = nameOf(document, operationName) ?? document.id;
    return { query: document.text, operationName, variables, extensions };
  };
}

/** Finds a document with and without the prefix that an id may have in the manifest or in the request. */
function find(
  trusted: ReadonlyMap<string, TrustedDocument>,
  id: string,
): TrustedDocument | undefined {
  const other = id.startsWith(SHA256) ? id.slice(SHA256.length) : SHA256 + id;
  return trusted.get(id) ?? trusted.get(other);
}

/** The prefix of SHA-256 ids in the appendix "Persisted Documents" of GraphQL over HTTP. */
const SHA256 = 'sha256:';

/** The parameter as the appendix, Relay and others name it. */
const NAMES = ['documentId', 'doc_id', 'id'];

function idOf({ inbound: { method, query } }: Exchange, params: Params): string | undefined {
  const sent: Params = method === 'GET' ? Object.fromEntries(new URLSearchParams(query)) : params;
  return NAMES.map((name) => sent[name]).find((id) => typeof id === 'string');
}

/** The hash that Apollo and urql send, of a trusted document or in automatic persisted queries. */
function hashOf(params: Params): string | undefined {
  const { persistedQuery } = (params['extensions'] ?? {}) as { persistedQuery?: Params | null };
  const hash = persistedQuery?.['sha256Hash'];
  return typeof hash === 'string' ? hash : undefined;
}

function nameOf({ operations }: TrustedDocument, requested: unknown): string | undefined {
  const [only, ...others] = operations;
  if (requested !== undefined && requested !== null) {
    return operations.find((name) => name === requested);
  }
  return others.length === 0 ? only : undefined;
}

const UNTRUSTED =
  'This gateway accepts only trusted documents. Send the "documentId" of one instead of a "query"; the operator of this gateway can add operations to its manifest.';

/**
 * An error of the protocol of automatic persisted queries. Clients recognize it by its message and send the text: with
 * the hash again if it was not found, without hashes from now on if they are not supported. Caches must not keep it.
 */
function notPersisted(code: 'PERSISTED_QUERY_NOT_FOUND' | 'PERSISTED_QUERY_NOT_SUPPORTED') {
  const http = { status: 200, headers: { 'cache-control': 'private, no-store' } };
  const message =
    code === 'PERSISTED_QUERY_NOT_FOUND' ? 'PersistedQueryNotFound' : 'PersistedQueryNotSupported';
  return codedError(code, message, { extensions: { http } });
}

const PARAMS: ReadonlySet<string> = new Set(['query', 'variables', 'operationName', 'extensions']);

function checkParams(_exchange: Exchange, params: Params): Params {
  for (const name in params) {
    if (PARAMS.has(name) || params[name] === null || params[name] === undefined) continue;
    throw badRequest(`The request has an unknown parameter "${name}". Remove it.`);
  }
  const { query } = params;
  if (query === undefined || query === null) {
    throw badRequest('The request has no "query". Send the text of an operation.');
  }
  if (typeof query !== 'string') {
    throw badRequest('The "query" of the request is not a string. Send the text of an operation.');
  }
  for (const name of ['variables', 'extensions']) {
    const value = params[name];
    if (value === undefined || value === null) continue;
    if (typeof value !== 'object' || Array.isArray(value)) {
      throw badRequest(
        `The "${name}" of the request must be an object. Correct them, or omit them.`,
      );
    }
  }
  return params;
}

function mutationInAddress() {
  const http = { status: 405, headers: { Allow: 'POST' } };
  const message = 'A GET request cannot execute a mutation. Send it with POST.';
  return codedError('BAD_USER_INPUT', message, { extensions: { http } });
}

function withoutRootType(type: OperationTypeNode) {
  return codedError(
    'BAD_USER_INPUT',
    `The schema has no type for a ${type}. Send an operation of another type.`,
  );
}

const CONCEALED =
  "The SDL of this subgraph is not served: introspection is off, and this credential is not a router's. " +
  'The operator of this gateway can print it with "schema print --subgraph".';
