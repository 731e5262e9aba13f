import type { ExecutionResult } from 'graphql';
import type { Part } from './snapshot-parts.ts';
import { keyOf } from './snapshot-parts.ts';
import type { ProbeDocument } from './probe-document.ts';

/** What the errors say about a document. */
interface Refusal {
  /** Whether an error names the field that cannot exist: the service has validated the document. */
  readonly isValidated: boolean;
  /** The parts that errors name, by their keys, with the service's words. */
  readonly named: ReadonlyMap<string, { readonly part: Part; readonly words: string }>;
  /** The words of the first error that is about a limit of the service: depth, cost, size, number of errors. */
  readonly limit: string | undefined;
  /** The words of the first other error that names nothing of the document. */
  readonly unclear: string | undefined;
}

/**
 * Reads the errors with which a service refuses a document. graphql-js, graphql-java, Hot Chocolate, graphql-ruby and
 * gqlgen each have other words, so the words are searched only for the names of what the error's line uses; without
 * lines, for quoted names that only one part of the document has. Anything else is unclear.
 */
export function readRefusal({ errors }: ExecutionResult, document: ProbeDocument): Refusal {
  const named = new Map<string, { part: Part; words: string }>();
  let isValidated = false;
  let limit: string | undefined;
  let unclear: string | undefined;
  for (const { text, words, lines } of (errors ?? []).map(readError)) {
    if (hasWord(text, document.impossible.name)) isValidated = true;
    // Follows from another mistake: the variables of what does not exist are not used.
    else if (UNUSED.test(text)) continue;
    else if (LIMIT.test(words.replace(QUOTES, ''))) limit ??= words;
    else {
      const part = placed(text, lines, document) ?? quoted(text, document);
      if (!part) unclear ??= words;
      else if (!named.has(keyOf(part))) named.set(keyOf(part), { part, words });
    }
  }
  return { isValidated, named, limit, unclear };
}

const UNUSED = /\b(un|never |not )used\b/i;
const LIMIT = /\b(exceed\w*|limit\w*|maxim\w+|complexity|too (many|deep|large|complex|long))\b/i;
const QUOTES = /(["'`])[\w.:@$! ]*\1/g;

/** Whether an error is about a line, or has a word. */
export function mentions({ errors }: ExecutionResult, line: number, word: string): boolean {
  return (errors ?? [])
    .map(readError)
    .some(({ text, lines }) => lines.includes(line) || hasWord(text, word));
}

interface ReadError {
  /** The message, and what `extensions` add to it: some messages have no names. */
  readonly text: string;
  readonly words: string;
  readonly lines: readonly number[];
}

function readError(error: unknown): ReadError {
  const { message, locations, extensions } = (error ?? {}) as Record<string, unknown>;
  const full = typeof message === 'string' ? message : '';
  // graphql-java: Validation error (FieldUndefined@[persons/items]) : Field 'x' in type 'Y' is undefined
  const words = full.replace(/^Validation error \([^)]*\) ?: /i, '');
  const lines = (Array.isArray(locations) ? locations : [])
    .map((location) => (location as { line?: unknown } | null)?.line)
    .filter((line) => typeof line === 'number');
  const withoutHints = full.replace(/\b(Did you mean|Perhaps you meant)\b.*$/is, '');
  return { text: `${withoutHints} ${JSON.stringify(extensions) ?? ''}`, words, lines };
}

/** The one part of the lines that the text names. */
function placed(text: string, lines: readonly number[], document: ProbeDocument): Part | undefined {
  const parts = distinct(lines.map((line) => document.lines[line - 1]));
  const named = parts.filter((part) => wordsOf(part, document).some((word) => hasWord(text, word)));
  return named.length === 1 ? named[0] : undefined;
}

/** Its names, and those of the types and variables that its lines have. */
function wordsOf(part: Part, { text, lines }: ProbeDocument): string[] {
  const key = keyOf(part);
  const used = text.split('\n').filter((_, at) => lines[at] && keyOf(lines[at]) === key);
  const words = used.flatMap((line) => line.match(/\w+/g) ?? []);
  return [part.name, part.argument ?? part.name, ...words.filter((word) => word !== 'on')];
}

/** The part of which the text quotes more names than of any other. */
function quoted(text: string, { lines }: ProbeDocument): Part | undefined {
  const quotes = text.replaceAll("n't", ' not').match(QUOTES) ?? [];
  const words = new Set(quotes.flatMap((quote) => quote.match(/\w+/g) ?? []));
  const found = distinct(lines)
    .filter(({ name, argument }) => words.has(argument ?? name))
    .map((part) => ({ part, count: namesOf(part).filter((name) => words.has(name)).length }))
    .toSorted((one, other) => other.count - one.count);
  const [best, next] = found;
  return best && best.count > (next?.count ?? 0) ? best.part : undefined;
}

function namesOf({ holder, name, argument }: Part): string[] {
  return [holder, name, ...(argument === undefined ? [] : [argument])];
}

function distinct(parts: readonly (Part | undefined)[]): Part[] {
  const there = parts.filter((part) => part !== undefined);
  return [...new Map(there.map((part) => [keyOf(part), part])).values()];
}

function hasWord(text: string, word: string): boolean {
  return new RegExp(`(?<!\\w)${word}(?!\\w)`).test(text);
}
