import { isCursor, type Answer, type AnsweredError } from './cursors.ts';

/** Two answers without what each side may write as it likes. */
interface Difference {
  readonly answer: Comparable;
  readonly expected: Comparable;
}

interface Comparable {
  readonly data: unknown;
  readonly errors: readonly string[];
}

/**
 * Compares an answer of the gateway with the one that graphql-js gives over lists in memory.
 *
 * @returns undefined if both say the same, or differ only as the design says
 */
export function difference(
  query: string,
  answer: Answer,
  expected: Answer,
): Difference | undefined {
  const [a, b] = [comparable(answer), comparable(expected)];
  if (JSON.stringify(a) === JSON.stringify(b)) return undefined;
  // Where everything is null, whether others fail too depends on who is first (specification, 6.4.4).
  if (a.data === null && b.data === null && a.errors.some((each) => b.errors.includes(each)))
    return undefined;
  if (differsInPlacesOnly(answer, expected)) return undefined;
  const failed = [...failedPages(query, answer), ...unreadPages(answer, expected)];
  if (failed.length > 0 && isEqualBeside(failed, answer, expected)) return undefined;
  return { answer: a, expected: b };
}

/** Whether one side reports the same errors further up, and has null there: a failed page has no records. */
function differsInPlacesOnly(left: Answer, right: Answer): boolean {
  const data = [left.data, right.data].map((each) => structuredClone(withoutCursors(each)));
  const matches = (these: Answer, others: Answer) =>
    (these.errors ?? []).every((error) => {
      const { path = [] } = error;
      const twin = others.errors?.find(
        (each) => wordsOf(each) === wordsOf(error) && isBelow(path, each.path ?? []),
      );
      if (!twin) return false;
      const upper = path.length < (twin.path?.length ?? 0) ? path : (twin.path ?? []);
      for (const each of data) clear(each, upper);
      return true;
    });
  return (
    matches(left, right) &&
    matches(right, left) &&
    JSON.stringify(data[0]) === JSON.stringify(data[1])
  );
}

type Path = NonNullable<AnsweredError['path']>;

/**
 * Places where only the gateway has no page: one of its records fails, or its parent, a `parent` of these services, is
 * not returned by any field for its id.
 */
function failedPages(query: string, { errors = [] }: Answer): Path[] {
  const isFailed = ({ message, extensions }: AnsweredError) =>
    FAILING_RECORD.test(message) ||
    (extensions?.['code'] === 'BAD_USER_INPUT' && /\bparent\b/.test(query));
  return errors.filter(isFailed).map(({ path = [] }) => path);
}

/** Of the fields of the judge's services that fail and must not be null. */
const FAILING_RECORD = /^No (?:rank|events) for/;

/** Places of pages that the service refuses, and that the gateway does not read: nothing of them is selected. */
function unreadPages(answer: Answer, { errors = [] }: Answer): Path[] {
  const places = errors.map(({ path = [] }) => path);
  return places.filter((path) => {
    const value = valueAt(answer.data, path);
    const members = typeof value === 'object' && value !== null ? Object.values(value) : [null];
    return members.every((typename) => typeof typename === 'string');
  });
}

function isEqualBeside(places: readonly Path[], ...answers: readonly Answer[]): boolean {
  const [left, right] = answers.map((answer) => {
    const data = structuredClone(withoutCursors(answer.data));
    for (const path of places) clear(data, path);
    const errors = (answer.errors ?? []).filter(
      (error) => !places.some((path) => isBelow(error.path ?? [], path)),
    );
    return JSON.stringify(comparable({ data, errors }));
  });
  return left === right;
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

/** Without the text of cursors, locations, and the order of errors. */
function comparable({ data, errors = [] }: Answer): Comparable {
  const texts = errors.map((error) => JSON.stringify({ path: error.path, ...saidBy(error) }));
  return { data: withoutCursors(data), errors: texts.toSorted() };
}

function withoutCursors(value: unknown): unknown {
  if (typeof value === 'string') return isCursor(value) ? '(cursor)' : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutCursors);
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, withoutCursors(inner)]),
  );
}

function wordsOf(error: AnsweredError): string {
  return JSON.stringify(saidBy(error));
}

/** Of an error of the gateway only the code: the lists in memory have other words. */
function saidBy({ message, extensions = {} }: AnsweredError) {
  const { code } = extensions;
  const isOurs = typeof code === 'string' && OWN_CODES.has(code);
  return isOurs ? { message: '(of the gateway)', extensions: { code } } : { message, extensions };
}

const OWN_CODES: ReadonlySet<string> = new Set([
  'BAD_USER_INPUT',
  'CURSOR_INVALID',
  'OPERATION_TOO_COMPLEX',
  'UPSTREAM_BAD_RESPONSE',
]);
