import { GraphQLError, Kind, type DocumentNode, type GraphQLSchema } from 'graphql';
import * as v from 'valibot';
import { OperatorMistakes, type OperatorMistake } from '../errors.ts';
import { excessOf, parseWithin, type Limits } from './limits.ts';
import { validationErrors } from './validation.ts';

export interface TrustedDocument {
  /** The id as it is written in the manifest. */
  readonly id: string;
  readonly text: string;
  /** The names of its operations, in order; undefined for an operation without a name. */
  readonly operations: readonly (string | undefined)[];
}

interface DocumentRules extends Limits {
  readonly schema: GraphQLSchema;
  readonly introspection: boolean;
}

/**
 * Reads the documents of a manifest, and checks each like a request that contains it.
 *
 * @returns the documents by their ids
 * @throws OperatorMistake that lists every document that would be refused
 */
export function readTrustedDocuments(
  content: unknown,
  rules: DocumentRules,
): ReadonlyMap<string, TrustedDocument> {
  const documents = readManifest(content);
  if (!documents) throw mistaken([MANIFEST_FORMS]);
  const checked = new Map<string, TrustedDocument>();
  const mistakes: string[] = [];
  for (const { id, text } of documents) {
    const checkedText = check(text, rules);
    if (checked.has(id)) mistakes.push(`${id}: The id is used twice.`);
    if (Array.isArray(checkedText))
      mistakes.push(...checkedText.map((mistake) => `${id}: ${mistake}`));
    else checked.set(id, { id, text, operations: operationsOf(checkedText) });
  }
  if (documents.length === 0) mistakes.push('It has no operations.');
  if (mistakes.length > 0) throw mistaken(mistakes);
  return checked;
}

const MANIFEST_FORMS =
  'It must be a JSON object that maps ids to the texts of operations, as Relay and GraphQL Code Generator write it, or an Apollo manifest (format "apollo-persisted-query-manifest", version 1).';

function mistaken(mistakes: readonly string[]): OperatorMistake {
  return new OperatorMistakes('The manifest of TRUSTED_DOCUMENTS', mistakes);
}

function check(text: string, rules: DocumentRules): DocumentNode | string[] {
  try {
    const document = parseWithin(rules.maxTokens)(text);
    if (operationsOf(document).length === 0) return ['It has no operation.'];
    const excess = excessOf(document, rules);
    const hasBrokenFragments = excess === 'broken';
    if (!hasBrokenFragments && excess.length > 0) return excess.map(({ message }) => message);
    const errors = validationErrors(document, {
      ...rules,
      hasBrokenFragments,
      hideSuggestions: false,
    });
    return errors.length > 0 ? errors.map(placed) : document;
  } catch (error) {
    if (error instanceof GraphQLError) return [placed(error)];
    throw error;
  }
}

function placed({ message, locations: [at] = [] }: GraphQLError): string {
  return at ? `${message} (line ${at.line}, column ${at.column})` : message;
}

function operationsOf({ definitions }: DocumentNode): (string | undefined)[] {
  return definitions
    .filter((each) => each.kind === Kind.OPERATION_DEFINITION)
    .map(({ name }) => name?.value);
}

/** Written by generate-persisted-query-manifest of Apollo. */
const apolloManifest = v.object({
  format: v.literal('apollo-persisted-query-manifest'),
  version: v.literal(1),
  operations: v.array(v.object({ id: v.pipe(v.string(), v.minLength(1)), body: v.string() })),
});

/** Written by relay-compiler and the client preset of GraphQL Code Generator. */
const textsById = v.record(v.pipe(v.string(), v.minLength(1)), v.string());

/** Reads a manifest in one of these two forms; undefined for any other. */
function readManifest(
  content: unknown,
): readonly { readonly id: string; readonly text: string }[] | undefined {
  if (v.is(apolloManifest, content))
    return content.operations.map(({ id, body }) => ({ id, text: body }));
  if (!Array.isArray(content) && v.is(textsById, content))
    return Object.entries(content).map(([id, text]) => ({ id, text }));
  return undefined;
}
