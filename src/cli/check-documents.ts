import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import {
  GraphQLError,
  Kind,
  parse,
  Source,
  visit,
  type DefinitionNode,
  type DocumentNode,
  type ExecutableDefinitionNode,
  type FragmentDefinitionNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import type { Config } from '../config.ts';
import { measureDocument } from '../operations/limits.ts';
import { MANIFEST_FORMS, readManifest } from '../operations/trusted-documents.ts';
import { validationErrors } from '../operations/validation.ts';
import { onOneLine } from '../schema/live/introspect.ts';
import { OverridesError } from '../schema/derivation/overrides.ts';
import { adaptersPath, readAdaptersFile, readSnapshotFile } from '../setup/operator-files.ts';
import { loadedFor } from './gateway-config-file.ts';
import { servedOffline } from './schema-served.ts';
import type { AdaptersFile } from './schema-source.ts';
import { CommandError, type Terminal } from './terminal.ts';

/** A file, or the id of a document in a manifest. */
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
  /** Operations with mistakes that only the live schema causes. */
  readonly broken: readonly MistakenOperation[];
  /** Operations that are not valid with the schema that is served today either. */
  readonly invalid: readonly MistakenOperation[];
  /** Set if nothing was checked: the reason why the gateway would not start with the live schema. */
  readonly unchecked?: string;
}

/**
 * Reads documents of clients, which are written for the served schema.
 *
 * @param isOlder whether the snapshot and its adapters.json may be older than gateway.config.ts
 * @returns a function that checks them against what is served for another schema of the service, with the adapters.json
 * of that schema, or else of the snapshot
 * @throws Error with a message for the operator
 */
export async function documentsCheck(
  path: string,
  config: Config,
  terminal: Terminal,
  isOlder: boolean,
): Promise<(acceptedSdl: string, adapters: AdaptersFile | undefined) => DocumentsReport> {
  const documents = readOperationDocuments(path, terminal);
  const { schemaPath } = config;
  const beside = {
    path: adaptersPath(schemaPath),
    content: readAdaptersFile(schemaPath, terminal),
  };
  const added = await loadedFor(config, terminal);
  const servedOf = (sdl: string, adapters: AdaptersFile, isOlderSide = false) => {
    try {
      return servedOffline(sdl, config, adapters.content, added, isOlderSide).schema;
    } catch (error) {
      throw error instanceof OverridesError ? error.in(adapters.path) : error;
    }
  };
  const today = servedOf(readSnapshotFile(schemaPath, terminal), beside, isOlder);
  return (acceptedSdl, adapters = beside) => {
    const report = { path, operations: documents.operations.length };
    try {
      return { ...report, ...compared(documents, today, servedOf(acceptedSdl, adapters)) };
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
  const checked = operations.map((each) => {
    const before = mistakesOf(each, today);
    const known = new Set(before.map(withoutHint));
    const after = mistakesOf(each, live).filter((error) => !known.has(withoutHint(error)));
    return { each, before, after };
  });
  const listed = (kind: 'before' | 'after') =>
    checked
      .filter(({ [kind]: errors }) => errors.length > 0)
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

/** Identifies a mistake without the suggestion in its message, which depends on the schema. */
function withoutHint({ message, source, locations }: GraphQLError): string {
  return JSON.stringify([source?.name, locations, message.replace(/ Did you mean .*$/s, '')]);
}

/**
 * The report as text.
 *
 * @param schema what the documents were checked against, for example `the live schema`
 */
export function documentsText(report: DocumentsReport, schema: string): string {
  const { path, operations, broken, invalid, unchecked } = report;
  if (unchecked !== undefined) {
    return `The operations in ${path} were not checked: the gateway would not start with ${schema}. ${unchecked}\n`;
  }
  const total = `${operations} operations in ${path}`;
  const parts = [
    [`${broken.length} of ${total} break with ${schema}`, broken] as const,
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

/** An operation of a client, with the fragments that it uses. The nodes know their source: a file, or an id. */
interface OperationDocument {
  /** For example `query People`. */
  readonly title: string;
  /** The file, or the id in a manifest. */
  readonly source: string;
  readonly line: number;
  /** An error if the text cannot be parsed. */
  readonly document: DocumentNode | GraphQLError;
}

interface OperationDocuments {
  readonly operations: readonly OperationDocument[];
  readonly isManifest: boolean;
}

/**
 * Reads the operations of a folder with .graphql or .gql files, of one such file, or of a manifest of trusted
 * documents. Files share their fragments, as clients are built from all of them.
 *
 * @throws CommandError also if there is no operation
 */
function readOperationDocuments(
  path: string,
  terminal: Pick<Terminal, 'readFile'>,
): OperationDocuments {
  const read = (file: string) => withReason(file, () => terminal.readFile(file));
  const isFolder = withReason(path, () => statSync(path).isDirectory());
  const isManifest = !isFolder && !IN_FILES.test(path);
  const operations = isManifest
    ? operationsOfManifest(path, read(path))
    : operationsOfFiles(
        (isFolder ? filesIn(path) : [path]).map((file) => new Source(read(file), file)),
      );
  if (operations.length > 0) return { operations, isManifest };
  throw new CommandError(
    `${path} has no operations. Name a folder with .graphql or .gql files, or a manifest of trusted documents.`,
  );
}

const IN_FILES = /\.(graphql|gql)$/;

/** Skips `node_modules` and hidden folders. */
function filesIn(folder: string): string[] {
  const entries = withReason(folder, () => readdirSync(folder)).toSorted();
  return entries.flatMap((name) => {
    const path = join(folder, name);
    if (name.startsWith('.') || name === 'node_modules') return [];
    const entry = statSync(path, { throwIfNoEntry: false });
    if (entry?.isDirectory()) return filesIn(path);
    return entry?.isFile() && IN_FILES.test(name) ? [path] : [];
  });
}

function withReason<Result>(path: string, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    const { code = 'unknown error' } = error as { code?: string };
    throw new CommandError(
      `${path} cannot be read (${code}). \`--documents\` needs a folder with .graphql or .gql files, or a manifest of ` +
        'trusted documents.',
    );
  }
}

function operationsOfManifest(path: string, text: string): OperationDocument[] {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw new CommandError(`${path} is not JSON: ${(error as Error).message}.`);
  }
  const entries = readManifest(content);
  if (!entries) throw new CommandError(`${path} is not a manifest. ${MANIFEST_FORMS}`);
  return entries.map((entry) => {
    const document = parsed(new Source(entry.text, entry.id));
    if (document instanceof GraphQLError) return unparsed(document, entry.id);
    const operations = document.definitions.filter(isOperation);
    return {
      title: operations.map(titleOf).join(', ') || 'no operation',
      source: entry.id,
      line: operations[0] ? lineOf(operations[0]) : 1,
      document,
    };
  });
}

function operationsOfFiles(sources: readonly Source[]): OperationDocument[] {
  const files = sources.map((source) => ({ file: source.name, document: parsed(source) }));
  const fragments: FragmentDefinitionNode[] = [];
  for (const { document } of files) {
    if (document instanceof GraphQLError) continue;
    fragments.push(...document.definitions.filter(isFragment));
  }
  const byName = Map.groupBy(fragments, ({ name }) => name.value);
  return files.flatMap(({ file, document }) => {
    if (document instanceof GraphQLError) return [unparsed(document, file)];
    return document.definitions.filter(isOperation).map((operation) => ({
      title: titleOf(operation),
      source: file,
      line: lineOf(operation),
      document: withFragments(operation, byName),
    }));
  });
}

type FragmentsByName = ReadonlyMap<string, readonly FragmentDefinitionNode[]>;

function withFragments(
  operation: OperationDefinitionNode,
  fragments: FragmentsByName,
): DocumentNode {
  const used = new Map<string, FragmentDefinitionNode>();
  const definitions: ExecutableDefinitionNode[] = [operation];
  for (const definition of definitions) {
    visit(definition, {
      FragmentSpread: ({ name: { value } }) => {
        const fragment = used.has(value) ? undefined : nearest(fragments.get(value), definition);
        if (!fragment) return;
        used.set(value, fragment);
        definitions.push(fragment);
      },
    });
  }
  return { kind: Kind.DOCUMENT, definitions };
}

/** Chooses among fragments of the same name, because a folder may hold several clients. */
function nearest(
  fragments: readonly FragmentDefinitionNode[] = [],
  user: ExecutableDefinitionNode,
): FragmentDefinitionNode | undefined {
  const way = sourceOf(user).split(/[/\\]/);
  const shared = (fragment: FragmentDefinitionNode) => {
    const other = sourceOf(fragment).split(/[/\\]/);
    const parting = way.findIndex((step, at) => step !== other[at]);
    return parting === -1 ? way.length : parting;
  };
  return fragments.toSorted((a, b) => shared(b) - shared(a))[0];
}

function parsed(source: Source): DocumentNode | GraphQLError {
  try {
    return parse(source);
  } catch (error) {
    if (error instanceof GraphQLError) return error;
    throw error;
  }
}

function unparsed(document: GraphQLError, source: string): OperationDocument {
  return { title: 'not GraphQL', source, line: document.locations?.[0]?.line ?? 1, document };
}

function isOperation(node: DefinitionNode): node is OperationDefinitionNode {
  return node.kind === Kind.OPERATION_DEFINITION;
}

function isFragment(node: DefinitionNode): node is FragmentDefinitionNode {
  return node.kind === Kind.FRAGMENT_DEFINITION;
}

function titleOf({ operation, name }: OperationDefinitionNode): string {
  return name ? `${operation} ${name.value}` : `${operation} without a name`;
}

function lineOf({ loc }: OperationDefinitionNode): number {
  return loc!.startToken.line;
}

function sourceOf({ loc }: ExecutableDefinitionNode): string {
  return loc!.source.name;
}
