import { usePersistedOperations } from '@graphql-yoga/plugin-persisted-operations';
import type { GraphQLParams, Plugin, YogaInitialContext } from 'graphql-yoga';
import { codedError } from '../../errors.ts';
import type { CheckedDocument } from './check-documents.ts';

export interface TrustedDocuments {
  readonly plugin: Plugin<YogaInitialContext>;
  /** The name, or else the id, of the trusted operation that a request asks for; undefined for any other. */
  readonly operationOf: (request: Request) => string | undefined;
}

export interface TrustedDocumentsOptions {
  /** Whether texts are refused, but for those of routers. */
  readonly only: boolean;
  readonly isRouter: (request: Request) => boolean;
}

/** Takes operations by the ids that they have in the operator's manifest. None is ever registered by a request. */
export function trustedDocuments(
  documents: ReadonlyMap<string, CheckedDocument>,
  { only, isRouter }: TrustedDocumentsOptions,
): TrustedDocuments {
  const asked = new WeakMap<Request, string>();
  const find = (id: string) =>
    documents.get(id) ?? documents.get(id.startsWith(SHA256) ? id.slice(SHA256.length) : id);
  return {
    operationOf: (request) => asked.get(request),
    plugin: usePersistedOperations<YogaInitialContext>({
      allowArbitraryOperations: only ? isRouter : true,
      extractPersistedOperationId: (params, request) => {
        const id = idOf(params, request);
        const document = id === null ? undefined : find(id);
        if (document) asked.set(request, nameOf(document, params.operationName) ?? id!);
        return id;
      },
      getPersistedOperation: (id) => find(id)?.text ?? null,
      customErrors: {
        persistedQueryOnly: () =>
          codedError(
            'FORBIDDEN',
            'Only trusted documents are taken here: send the "documentId" of one in place of "query". The operator of this gateway can add operations to its manifest.',
            // As for what validation refuses: `spec` leaves 200 to callers who accept application/json.
            { extensions: { http: { status: 403, spec: true } } },
          ),
        keyNotFound: () => refused('Send a "query", or the "documentId" of a trusted document.'),
        notFound: () =>
          refused(
            'No trusted document has this id. They are read from a manifest when the gateway starts, and cannot be registered by a request.',
          ),
      },
    }),
  };
}

/** How ids by SHA-256 are written in the appendix "Persisted Documents" of GraphQL over HTTP. */
const SHA256 = 'sha256:';

/** As the appendix, Relay, and Apollo's `extensions.persistedQuery` have it. */
const NAMES = ['documentId', 'doc_id', 'id'];

function idOf(params: GraphQLParams, request: Request): string | null {
  const given = request.method === 'GET' ? inAddress(request) : (params as Given);
  const ids = NAMES.map((name) => given[name]);
  const { persistedQuery } = (params.extensions ?? {}) as { persistedQuery?: Given | null };
  ids.push(persistedQuery?.['sha256Hash']);
  return ids.find((id): id is string => typeof id === 'string') ?? null;
}

type Given = Readonly<Record<string, unknown>>;

function inAddress({ url }: Request): Given {
  return Object.fromEntries(new URL(url).searchParams);
}

function nameOf({ operations }: CheckedDocument, asked: unknown): string | undefined {
  const [only, ...others] = operations;
  if (asked !== undefined && asked !== null) return operations.find((name) => name === asked);
  return others.length === 0 ? only : undefined;
}

function refused(message: string) {
  return codedError('BAD_USER_INPUT', message, { extensions: { http: { status: 400 } } });
}
