import {
  GraphQLError,
  Kind,
  NoSchemaIntrospectionCustomRule,
  specifiedRules,
  validate,
  type DocumentNode,
  type GraphQLSchema,
} from 'graphql';
import { OperatorMistake } from '../../operator-mistake.ts';
import { incrementalRules } from '../incremental-rules.ts';
import { noReservedNames } from '../reserved-names.ts';
import { parseWithin } from './enforce-limits.ts';
import { excessOf, type Limits } from './limits.ts';
import { readManifest } from './manifest.ts';

export interface CheckedDocument {
  readonly text: string;
  /** Of its operations, in their order; undefined for one without a name. */
  readonly operations: readonly (string | undefined)[];
}

export interface DocumentRules extends Limits {
  readonly schema: GraphQLSchema;
  readonly introspection: boolean;
}

/**
 * Holds the documents of a manifest against everything that a request with them would be held against, by their ids.
 *
 * @throws OperatorMistake that names every one of them that would be refused
 */
export function checkDocuments(
  content: unknown,
  rules: DocumentRules,
): ReadonlyMap<string, CheckedDocument> {
  const documents = readManifest(content);
  if (!documents) throw mistaken([FORMS]);
  const checked = new Map<string, CheckedDocument>();
  const mistakes: string[] = [];
  for (const { id, text } of documents) {
    const found = check(text, rules);
    if (checked.has(id)) mistakes.push(`${id}: it is there twice.`);
    if (Array.isArray(found)) mistakes.push(...found.map((mistake) => `${id}: ${mistake}`));
    else checked.set(id, { text, operations: operationsOf(found) });
  }
  if (documents.length === 0) mistakes.push('It holds no operation.');
  if (mistakes.length > 0) throw mistaken(mistakes);
  return checked;
}

const FORMS =
  'It must be a JSON object with the text of each operation by its id, as Relay and GraphQL Code Generator write it, or a manifest of Apollo (format "apollo-persisted-query-manifest", version 1).';

function mistaken(mistakes: readonly string[]): OperatorMistake {
  return new OperatorMistake(
    `The manifest of TRUSTED_DOCUMENTS has ${mistakes.length === 1 ? 'a mistake' : `${mistakes.length} mistakes`}:\n${mistakes.map((mistake) => `  - ${mistake}`).join('\n')}`,
  );
}

function check(text: string, rules: DocumentRules): DocumentNode | string[] {
  const { schema, introspection } = rules;
  try {
    const document = parseWithin(rules.maxTokens)(text);
    if (operationsOf(document).length === 0) return ['It has no operation.'];
    const excess = excessOf(document, rules);
    // Of broken fragments the validation says what is wrong.
    if (excess !== 'broken' && excess.length > 0) return excess.map(({ message }) => message);
    const errors = validate(schema, document, [
      ...specifiedRules,
      noReservedNames,
      incrementalRules,
      ...(introspection ? [] : [NoSchemaIntrospectionCustomRule]),
    ]);
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
