import { isDeepStrictEqual } from 'node:util';
import { isCursor, type Answer, type AnsweredError } from './cursors.ts';

type Path = NonNullable<AnsweredError['path']>;

/** An error, and what of it both sides have to say. */
interface Said {
  readonly path: Path;
  readonly words: string;
  readonly error: AnsweredError;
}

/**
 * Compares an answer of the gateway with the one that graphql-js gives over lists in memory.
 *
 * @returns undefined if both say the same, in whatever order, or differ only as the design says
 */
export function difference(
  query: string,
  answer: Answer,
  expected: Answer,
): { readonly answer: Answer; readonly expected: Answer } | undefined {
  const [ours, theirs] = [saidIn(answer), saidIn(expected)];
  const [ourData, theirData] = [withoutCursors(answer.data), withoutCursors(expected.data)];
  const [more, missing] = [beyond(ours, theirs), beyond(theirs, ours)];
  // Where everything is null, whether others fail too depends on who is first (specification, 6.4.4).
  const isEmpty = answer.data === null && expected.data === null;
  if (isEmpty && more.length < ours.length) return undefined;
  const places = [
    ...more.filter(({ error }) => isOfPage(error, query)).map(({ path }) => path),
    ...missing.filter(({ path }) => isUnread(valueAt(ourData, path))).map(({ path }) => path),
    ...sharedPlaces(more, theirs),
    ...sharedPlaces(missing, ours),
  ];
  const rest = [...more, ...missing].filter(
    ({ path }) => !places.some((place) => isBelow(path, place)),
  );
  for (const place of places) for (const data of [ourData, theirData]) clear(data, place);
  const isSame = rest.length === 0 && isDeepStrictEqual(ourData, theirData);
  return isSame ? undefined : { answer, expected };
}

/**
 * Whether only the gateway has no page: one of its records fails, or that of `before` is null, or its parent, a `parent` of these services, is not
 * returned by any field for its id.
 */
function isOfPage({ message, extensions }: AnsweredError, query: string): boolean {
  const isLost = extensions?.['code'] === 'BAD_USER_INPUT' && /\bparent\b/.test(query);
  return (
    isLost || FAILING_RECORD.test(message) || message.startsWith('The record of `before` has no id')
  );
}

/** Of the fields of the judge's services that fail and must not be null. A drain says the first error of the page. */
const FAILING_RECORD =
  /^(?:The drain ended .+ could not be read: No (?:rank|events|score)|No (?:rank|events)) for/;

/** Whether the gateway does not read a page, which the service refuses: nothing of it is selected. */
function isUnread(value: unknown): boolean {
  const members = typeof value === 'object' && value !== null ? Object.values(value) : [null];
  return members.every((typename) => typeof typename === 'string');
}

/** Where the other side has the same error further up or down: a failed page has no records. */
function sharedPlaces(errors: readonly Said[], others: readonly Said[]): Path[] {
  return errors.flatMap(({ path, words }) =>
    others
      .filter((other) => other.words === words && isBelow(path, other.path))
      .map((other) => (path.length < other.path.length ? path : other.path)),
  );
}

/** The errors of one side that the other does not have at the same place. */
function beyond(errors: readonly Said[], others: readonly Said[]): Said[] {
  const left = others.map(textOf);
  return errors.filter((error) => {
    const at = left.indexOf(textOf(error));
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

function textOf({ path, words }: Said): string {
  return JSON.stringify([path, words]);
}

/** Whether one of two paths leads to a part of the other's value. */
function isBelow(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.slice(0, b.length).every((step, index) => step === b[index]);
}

function clear(data: unknown, path: Path): void {
  const holder = valueAt(data, path.slice(0, -1)) as Record<string | number, unknown> | undefined;
  const last = path.at(-1);
  if (typeof holder === 'object' && holder !== null && last !== undefined) holder[last] = null;
}

function valueAt(data: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (holder, step) => (holder as Record<string | number, unknown> | null | undefined)?.[step],
    data,
  );
}

/** Returns a copy. */
function withoutCursors(value: unknown): unknown {
  if (typeof value === 'string') return isCursor(value) ? '(cursor)' : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutCursors);
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, withoutCursors(inner)]),
  );
}

/** Of an error of the gateway only the code counts: the lists in memory have other words. */
function saidIn({ errors = [] }: Answer): Said[] {
  return errors.map((error) => {
    const { message, path = [], extensions = {} } = error;
    const code = extensions['code'];
    const isOurs = OWN_CODES.has(code);
    return { path, words: JSON.stringify(isOurs ? code : { message, extensions }), error };
  });
}

const OWN_CODES: ReadonlySet<unknown> = new Set([
  'BAD_USER_INPUT',
  'CURSOR_INVALID',
  'OPERATION_TOO_COMPLEX',
  'UPSTREAM_BAD_RESPONSE',
]);
