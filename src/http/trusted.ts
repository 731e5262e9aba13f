import { badRequest, codedError, forbidden } from '../errors.ts';
import type { TrustedDocument } from '../operations/trusted-documents.ts';
import type { Exchange } from './exchange.ts';
import type { Params } from './params.ts';

interface TrustedParts {
  /** By their ids; undefined: there are no trusted documents. */
  readonly trusted: ReadonlyMap<string, TrustedDocument> | undefined;
  /** Whether all other operations are refused, except for routers. */
  readonly trustedDocumentsOnly: boolean;
  readonly isRouter: (exchange: Exchange) => boolean;
}

/**
 * Accepts operations by their ids in the operator's manifest. A request never registers one: clients that try automatic
 * persisted queries get an error that says so, and send the text.
 *
 * @returns replaces the id by the text of its document
 */
export function trustedDocuments({ trusted, trustedDocumentsOnly, isRouter }: TrustedParts) {
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
    if (id === undefined && hash === undefined) throw badRequest(NEITHER);
    const document = find(trusted, id ?? hash!);
    if (!document) throw id === undefined ? notPersisted('PERSISTED_QUERY_NOT_FOUND') : unknownId();
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
  const name = requested ?? (operations.length === 1 ? operations[0] : undefined);
  return operations.find((each) => each === name);
}

const UNTRUSTED =
  'This gateway accepts only trusted documents. Send the "documentId" of one instead of a "query"; the operator of this gateway can add operations to its manifest.';
const NEITHER =
  'The request has neither a "query" nor the id of a trusted document. Send a "query" or a "documentId".';

function unknownId() {
  return codedError(
    'PERSISTED_QUERY_NOT_FOUND',
    'No trusted document has this id. The operator of this gateway adds documents to its manifest, which is read at the start; a request cannot register them.',
    { extensions: { http: { status: 400 } } },
  );
}

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
