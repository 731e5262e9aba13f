import { codedError } from '../../errors.ts';
import type { TrustedDocument } from '../../operations/trusted-documents.ts';
import type { Exchange, Stage } from '../exchange/exchange.ts';

export interface TrustedDocumentsOptions {
  /** Whether texts are refused, but for those of routers. */
  readonly only: boolean;
  readonly isRouter: (exchange: Exchange) => boolean;
}

/** Takes operations by the ids that they have in the operator's manifest. None is ever registered by a request. */
export function trustedDocuments(
  documents: ReadonlyMap<string, TrustedDocument>,
  { only, isRouter }: TrustedDocumentsOptions,
): Stage {
  const find = (id: string) =>
    documents.get(id) ?? documents.get(id.startsWith(SHA256) ? id.slice(SHA256.length) : id);
  return (exchange) => {
    const { query, operationName, variables, extensions } = exchange.params;
    if (query) {
      if (only && !isRouter(exchange)) throw untrusted();
      return undefined;
    }
    const id = idOf(exchange);
    if (id === undefined) {
      throw refused('Send a "query", or the "documentId" of a trusted document.');
    }
    const document = find(id);
    if (!document) {
      throw refused(
        'No trusted document has this id. They are read from a manifest when the gateway starts, and cannot be registered by a request.',
      );
    }
    exchange.trustedName = nameOf(document, operationName) ?? id;
    exchange.params = { query: document.text, operationName, variables, extensions };
    return undefined;
  };
}

/** How ids by SHA-256 are written in the appendix "Persisted Documents" of GraphQL over HTTP. */
const SHA256 = 'sha256:';

/** As the appendix, Relay, and Apollo's `extensions.persistedQuery` have it. */
const NAMES = ['documentId', 'doc_id', 'id'];

function idOf({ method, query, params }: Exchange): string | undefined {
  const given: Given = method === 'GET' ? Object.fromEntries(new URLSearchParams(query)) : params;
  const ids = NAMES.map((name) => given[name]);
  const { persistedQuery } = (params['extensions'] ?? {}) as { persistedQuery?: Given | null };
  ids.push(persistedQuery?.['sha256Hash']);
  return ids.find((id): id is string => typeof id === 'string');
}

type Given = Readonly<Record<string, unknown>>;

function nameOf({ operations }: TrustedDocument, asked: unknown): string | undefined {
  const [only, ...others] = operations;
  if (asked !== undefined && asked !== null) return operations.find((name) => name === asked);
  return others.length === 0 ? only : undefined;
}

function untrusted() {
  return codedError(
    'FORBIDDEN',
    'Only trusted documents are taken here: send the "documentId" of one in place of "query". The operator of this gateway can add operations to its manifest.',
    // As for what validation refuses: `spec` leaves 200 to callers who accept application/json.
    { extensions: { http: { status: 403, spec: true } } },
  );
}

function refused(message: string) {
  return codedError('BAD_USER_INPUT', message, { extensions: { http: { status: 400 } } });
}
