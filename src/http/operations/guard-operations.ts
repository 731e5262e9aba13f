import type { GraphQLSchema } from 'graphql';
import type { Plugin, YogaInitialContext } from 'graphql-yoga';
import { checkDocuments } from './check-documents.ts';
import { documentCache } from './document-cache.ts';
import { enforceLimits } from './enforce-limits.ts';
import type { Limits } from './limits.ts';
import { trustedDocuments } from './trusted-documents.ts';

export interface OperationRules extends Limits {
  readonly introspection: boolean;
  readonly trustedDocumentsOnly: boolean;
  /** The manifest, as it was read; undefined without one. */
  readonly manifest: unknown;
  readonly schema: GraphQLSchema;
  /** Undefined where callers are not asked who they are: then nobody is one. */
  readonly isRouter: ((request: Request) => boolean) | undefined;
}

export interface GuardedOperations {
  readonly trustedDocuments: Plugin<YogaInitialContext>;
  readonly enforceLimits: Plugin<YogaInitialContext>;
  readonly documentCache: ReturnType<typeof documentCache>;
  /** The name, or else the id, of the trusted operation that a request asks for; undefined for any other. */
  readonly trustedOperation: (request: Request) => string | undefined;
}

/**
 * Which operations are taken: how large, and by which ids.
 *
 * @throws OperatorMistake when a trusted document would be refused
 */
export function guardOperations(rules: OperationRules): GuardedOperations {
  const { manifest, isRouter = () => false } = rules;
  const trusted =
    manifest === undefined
      ? undefined
      : trustedDocuments(checkDocuments(manifest, rules), {
          only: rules.trustedDocumentsOnly,
          isRouter,
        });
  return {
    trustedDocuments: trusted?.plugin ?? {},
    enforceLimits: enforceLimits(rules, isRouter),
    documentCache: documentCache(),
    trustedOperation: trusted?.operationOf ?? (() => undefined),
  };
}
