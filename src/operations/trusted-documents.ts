import * as v from 'valibot';
import { OperatorMistake } from '../errors.ts';

/** The texts of operations by their ids. */
export type TrustedDocuments = ReadonlyMap<string, string>;

/** Written by generate-persisted-query-manifest of Apollo. */
const apolloManifest = v.object({
  format: v.literal('apollo-persisted-query-manifest'),
  version: v.literal(1),
  operations: v.array(v.object({ id: v.pipe(v.string(), v.minLength(1)), body: v.string() })),
});

/** Written by relay-compiler and the client preset of GraphQL Code Generator. */
const textsById = v.record(v.pipe(v.string(), v.minLength(1)), v.string());

/** Reads a manifest in one of these two forms. Its texts are parsed and checked like those that callers send. */
export function readTrustedDocuments(content: unknown): TrustedDocuments {
  if (v.is(apolloManifest, content))
    return new Map(content.operations.map(({ id, body }) => [id, body]));
  if (!Array.isArray(content) && v.is(textsById, content)) return new Map(Object.entries(content));
  throw new OperatorMistake(
    'The manifest of TRUSTED_DOCUMENTS must be a JSON object that maps ids to the texts of operations, as Relay and GraphQL Code Generator write it, or an Apollo manifest (format "apollo-persisted-query-manifest", version 1).',
  );
}
