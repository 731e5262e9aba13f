import { z } from 'zod';

/** One operation that the operator trusts. */
export interface TrustedDocument {
  /** What clients send in place of the text. */
  readonly id: string;
  readonly text: string;
}

/** What generate-persisted-query-manifest of Apollo writes. */
const apolloManifest = z.object({
  format: z.literal('apollo-persisted-query-manifest'),
  version: z.literal(1),
  operations: z.array(z.object({ id: z.string().min(1), body: z.string() })),
});

/** What relay-compiler and the client preset of GraphQL Code Generator write. */
const textsById = z.record(z.string().min(1), z.string());

/** Reads a manifest in one of the forms of this field; undefined when it has none of them. */
export function readManifest(content: unknown): readonly TrustedDocument[] | undefined {
  const apollo = apolloManifest.safeParse(content);
  if (apollo.success) return apollo.data.operations.map(({ id, body }) => ({ id, text: body }));
  const map = textsById.safeParse(content);
  return map.success ? Object.entries(map.data).map(([id, text]) => ({ id, text })) : undefined;
}
