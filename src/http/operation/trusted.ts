import { badRequest, forbidden } from '../../errors.ts';
import type { TrustedDocument } from '../../operations/trusted-documents.ts';
import type { Exchange, Stage } from '../exchange.ts';

export interface TrustedDocumentsParts {
  /** By their ids; undefined: there are no trusted documents. */
  readonly trusted: ReadonlyMap<string, TrustedDocument> | undefined;
  /** Whether other operations are refused, except those of routers. */
  readonly trustedDocumentsOnly: boolean;
  readonly isRouter: (exchange: Exchange) => boolean;
}

/** Accepts operations by their ids in the operator's manifest. A request never registers one. */
export function trustedDocuments(parts: TrustedDocumentsParts): Stage {
  const { trusted, trustedDocumentsOnly, isRouter } = parts;
  if (!trusted) return () => undefined;
  const find = (id: string) =>
    trusted.get(id) ?? trusted.get(id.startsWith(SHA256) ? id.slice(SHA256.length) : id);
  return (exchange) => {
    const { query, operationName, variables, extensions } = exchange.params;
    if (query) {
      if (trustedDocumentsOnly && !isRouter(exchange)) throw forbidden(UNTRUSTED);
      return undefined;
    }
    const id = idOf(exchange);
    if (id === undefined) {
      throw badRequest(
        'The request has neither a "query" nor the id of a trusted document. Send a "query" or a "documentId".',
      );
    }
    const document = find(id);
    if (!document) {
      throw badRequest(
        'No trusted document has this id. The operator of this gateway adds documents to its manifest, which is read at the start; a request cannot register them.',
      );
    }
    exchange.trustedName = nameOf(document, operationName) ?? id;
    exchange.params = { query: document.text, operationName, variables, extensions };
    return undefined;
  };
}

/** The prefix of SHA-256 ids in the appendix "Persisted Documents" of GraphQL over HTTP. */
const SHA256 = 'sha256:';

/** The parameter as the appendix, Relay and others name it. Apollo sends `extensions.persistedQuery` instead. */
const NAMES = ['documentId', 'doc_id', 'id'];

function idOf({ method, query, params }: Exchange): string | undefined {
  const given: Given = method === 'GET' ? Object.fromEntries(new URLSearchParams(query)) : params;
  const ids = NAMES.map((name) => given[name]);
  const { persistedQuery } = (params['extensions'] ?? {}) as { persistedQuery?: Given | null };
  ids.push(persistedQuery?.['sha256Hash']);
  return ids.find((id): id is string => typeof id === 'string');
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
