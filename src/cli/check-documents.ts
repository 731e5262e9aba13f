import { GraphQLError, type GraphQLSchema } from 'graphql';
import type { Config } from '../config.ts';
import { measureDocument } from '../operations/measure-document.ts';
import { validationErrors } from '../operations/validation.ts';
import { onOneLine } from '../schema/live/introspect.ts';
import { readAdaptersFile, readSnapshotFile } from '../setup/operator-files.ts';
import { loadedFor } from './gateway-config-file.ts';
import {
  readOperationDocuments,
  type OperationDocument,
  type OperationDocuments,
} from './operation-documents.ts';
import { servedOffline } from './schema-print.ts';
import type { Terminal } from './terminal.ts';

/** Where something is: in a file, or in a document of a manifest, which has an id. */
type Place = { readonly file: string } | { readonly id: string };

type Mistake = Place & {
  readonly line: number;
  readonly column: number;
  readonly message: string;
};

type MistakenOperation = Place & {
  readonly line: number;
  /** For example `query People`. */
  readonly operation: string;
  readonly mistakes: readonly Mistake[];
};

export interface DocumentsReport {
  readonly path: string;
  readonly operations: number;
  /** Valid today, or with other mistakes, and no longer with the schema that the service has now. */
  readonly broken: readonly MistakenOperation[];
  /** Not valid with the schema that is served today: their mistakes are not due to a change of the service. */
  readonly invalid: readonly MistakenOperation[];
  /** Why nothing was checked: the gateway would not start with the schema of the service. */
  readonly unchecked?: string;
}

/**
 * Reads documents of clients, which are written for the served schema.
 *
 * @returns checks them against what is served of another schema of the service
 * @throws Error with a message for the operator
 */
export async function documentsCheck(
  path: string,
  config: Config,
  terminal: Terminal,
): Promise<(acceptedSdl: string) => DocumentsReport> {
  const documents = readOperationDocuments(path, terminal);
  const overrides = readAdaptersFile(config.schemaPath, terminal);
  const added = await loadedFor(config, terminal);
  const servedOf = (sdl: string) => servedOffline(sdl, config, overrides, added).schema;
  const today = servedOf(readSnapshotFile(config.schemaPath, terminal));
  return (acceptedSdl) => {
    const report = { path, operations: documents.operations.length };
    try {
      return { ...report, ...compared(documents, today, servedOf(acceptedSdl)) };
    } catch (error) {
      return { ...report, broken: [], invalid: [], unchecked: (error as Error).message };
    }
  };
}

function compared(
  { operations, isManifest }: OperationDocuments,
  today: GraphQLSchema,
  live: GraphQLSchema,
): Pick<DocumentsReport, 'broken' | 'invalid'> {
  const found = operations.map((each) => {
    const before = mistakesOf(each, today);
    const known = new Set(before.map(withoutHint));
    const after = mistakesOf(each, live).filter((error) => !known.has(withoutHint(error)));
    return { each, before, after };
  });
  const listed = (kind: 'before' | 'after') =>
    found
      .filter((one) => one[kind].length > 0)
      .map(({ each: { source, line, title }, [kind]: errors }) => ({
        ...placeOf(source),
        line,
        operation: title,
        mistakes: errors.map((error) => mistakeOf(error, source)),
      }));
  return { broken: listed('after'), invalid: listed('before') };

  function placeOf(source: string): Place {
    return isManifest ? { id: source } : { file: source };
  }

  function mistakeOf(error: GraphQLError, source: string): Mistake {
    const { line, column } = error.locations?.[0] ?? { line: 1, column: 1 };
    return {
      ...placeOf(error.source?.name ?? source),
      line,
      column,
      message: onOneLine(error.message),
    };
  }
}

function mistakesOf(
  { document }: OperationDocument,
  schema: GraphQLSchema,
): readonly GraphQLError[] {
  if (document instanceof GraphQLError) return [document];
  const { hasBrokenFragments } = measureDocument(document);
  return validationErrors(document, {
    schema,
    introspection: true,
    hasBrokenFragments,
    hideSuggestions: false,
  });
}

/** Identifies a mistake: what the message suggests depends on the schema. */
function withoutHint({ message, source, locations }: GraphQLError): string {
  return JSON.stringify([source?.name, locations, message.replace(/ Did you mean .*$/s, '')]);
}

/** The report as text. */
export function documentsText(report: DocumentsReport): string {
  const { path, operations, broken, invalid, unchecked } = report;
  if (unchecked !== undefined) {
    return `The operations in ${path} were not checked: the gateway would not start with the live schema. ${unchecked}\n`;
  }
  const total = `${operations} operations in ${path}`;
  const parts = [
    [`${broken.length} of ${total} break with the live schema`, broken] as const,
    ...(invalid.length > 0
      ? [
          [
            `${invalid.length} of ${total} have mistakes with the schema that is served today`,
            invalid,
          ] as const,
        ]
      : []),
  ];
  return parts
    .map(([title, mistaken]) =>
      mistaken.length === 0
        ? `${title}.\n`
        : [`${title}:`, ...mistaken.flatMap(linesOf), ''].join('\n'),
    )
    .join('\n');
}

function linesOf(mistaken: MistakenOperation): string[] {
  return [
    `  ${nameOf(mistaken)}:${mistaken.line} ${mistaken.operation}`,
    ...mistaken.mistakes.map(
      (mistake) => `    ${nameOf(mistake)}:${mistake.line}:${mistake.column} ${mistake.message}`,
    ),
  ];
}

function nameOf(place: Place): string {
  return onOneLine('file' in place ? place.file : place.id);
}
