import { GraphQLError, parse, validate } from 'graphql';
import type { DocumentNode, GraphQLSchema } from 'graphql';

/** The document of a query, or what is wrong with it. */
export type ReadDocument = (source: string) => DocumentNode | readonly GraphQLError[];

const REMEMBERED = 100;

/**
 * Remembers the documents that were asked last, as servers do: all pages of a walk have the same, and
 * validating it costs more than answering it.
 */
export function createDocumentReader(schema: GraphQLSchema): ReadDocument {
  const known = new Map<string, ReturnType<ReadDocument>>();
  return (source) => {
    const read = known.get(source) ?? readDocument(source, schema);
    known.delete(source);
    known.set(source, read);
    if (known.size > REMEMBERED) known.delete(known.keys().next().value!);
    return read;
  };
}

function readDocument(source: string, schema: GraphQLSchema): ReturnType<ReadDocument> {
  try {
    const document = parse(source);
    const errors = validate(schema, document);
    return errors.length > 0 ? errors : document;
  } catch (error) {
    if (error instanceof GraphQLError) return [error];
    throw error;
  }
}
