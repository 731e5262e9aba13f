import { badRequest, codedError, forbidden } from '../../errors.ts';
import type { TrustedDocument } from '../../operations/trusted-documents.ts';
import type { Exchange, Stage } from '../exchange.ts';

export interface TrustedDocumentsParts {
  /** By their ids; undefined: there are no trusted documents. */
  readonly trusted: ReadonlyMap<string, TrustedDocument> | undefined;
  /** Whether other operations are refused, except those of routers. */
  readonly trustedDocumentsOnly: boolean;
  readonly isRouter: (exchange: Exchange) => boolean;
}

/**
 * Accepts operations by their ids in the operator's manifest. A request never registers one: clients that try automatic
 * persisted queries get an error that says so, and send the text.
 */
export function trustedDocuments(parts: TrustedDocumentsParts): Stage {
  const { trusted, trustedDocumentsOnly, isRouter } = parts;
  return (exchange) => {
    const { query, operationName, variables, extensions } = exchange.params;
    if (query) {
      if (trusted && trustedDocumentsOnly && !isRouter(exchange)) throw forbidden(UNTRUSTED);
      return undefined;
    }
    const hash = hashOf(exchange);
    if (!trusted) {
      if (hash !== undefined) throw notPersisted('PERSISTED_QUERY_NOT_SUPPORTED');
      return undefined;
    }
    const id = idOf(exchange);
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
    // Not the id as it was sent, which metrics would keep: in a GET, it is a part of a long address.
    exchange.trustedName = nameOf(document, operationName) ?? document.id;
    exchange.params = { query: document.text, operationName, variables, extensions };
    return undefined;
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

function idOf({ method, query, params }: Exchange): string | undefined {
  const given: Given = method === 'GET' ? Object.fromEntries(new URLSearchParams(query)) : params;
  return NAMES.map((name) => given[name]).find((id) => typeof id === 'string');
}

/** The hash that Apollo and urql send, of a trusted document or in automatic persisted queries. */
function hashOf({ params }: Exchange): string | undefined {
  const { persistedQuery } = (params['extensions'] ?? {}) as { persistedQuery?: Given | null };
  const hash = persistedQuery?.['sha256Hash'];
  return typeof hash === 'string' ? hash : undefined;
}

type Given = Readonly<Record<string, unknown>>;

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
