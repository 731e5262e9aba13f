import { codedError, forbidden } from '../errors.ts';
import type { TrustedDocuments } from '../operations/trusted-documents.ts';
import type { Exchange } from './exchange.ts';
import type { Params } from './params.ts';

interface TrustedParts {
  /** Undefined: there are none. */
  readonly trusted: TrustedDocuments | undefined;
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
      if (trustedDocumentsOnly && !isRouter(exchange)) throw forbidden(UNTRUSTED);
      return params;
    }
    const hash = hashOf(params);
    if (!trusted) {
      if (hash !== undefined) throw notPersisted('PERSISTED_QUERY_NOT_SUPPORTED');
      return params;
    }
    const { documentId } = params;
    const id = typeof documentId === 'string' ? documentId : hash;
    if (id === undefined) return params;
    const text = trusted.get(id);
    if (text === undefined) {
      throw id === documentId ? unknownId() : notPersisted('PERSISTED_QUERY_NOT_FOUND');
    }
    exchange.notes.trustedName = id;
    return { query: text, operationName, variables, extensions };
  };
}

/** The hash that Apollo and urql send, of a trusted document or in automatic persisted queries. */
function hashOf(params: Params): string | undefined {
  const { persistedQuery } = (params['extensions'] ?? {}) as { persistedQuery?: Params | null };
  const hash = persistedQuery?.['sha256Hash'];
  return typeof hash === 'string' ? hash : undefined;
}

const UNTRUSTED =
  'This gateway accepts only trusted documents. Send the "documentId" of one instead of a "query"; the operator of this gateway can add operations to its manifest.';

function unknownId() {
  return codedError(
    'PERSISTED_QUERY_NOT_FOUND',
    'No trusted document has this id. The operator of this gateway adds documents to its manifest, which is read at the start; a request cannot register them.',
    { extensions: { http: { status: 400 } } },
  );
}

/**
 * An error of the protocol of automatic persisted queries. Clients recognize it by its message and send the text: with
 * the hash again if it was not found, without hashes from now on if they are not supported.
 */
function notPersisted(code: 'PERSISTED_QUERY_NOT_FOUND' | 'PERSISTED_QUERY_NOT_SUPPORTED') {
  const message =
    code === 'PERSISTED_QUERY_NOT_FOUND' ? 'PersistedQueryNotFound' : 'PersistedQueryNotSupported';
  return codedError(code, message, { extensions: { http: { status: 200 } } });
}
