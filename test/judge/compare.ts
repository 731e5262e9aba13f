import { isCursor, type Answer, type AnsweredError } from './cursors.ts';

/** A difference between two answers: its kind is the same for all that have one cause, as far as one can see. */
export interface Difference {
  readonly kind: string;
  readonly left: string;
  readonly right: string;
}

/** Both answers are as the gateway and the other side wrote them. @returns undefined if both say the same */
export function difference(left: Answer, right: Answer): Difference | undefined {
  const [a, b] = [comparable(left), comparable(right)];
  const [leftText, rightText] = [JSON.stringify(a), JSON.stringify(b)];
  if (leftText === rightText) return undefined;
  // Where everything is null, whether others fail too depends on who is first (specification, 6.4.4).
  if (a.data === null && b.data === null && a.errors.some((each) => b.errors.includes(each)))
    return undefined;
  const kind = differsInPlacesOnly(left, right)
    ? ERROR_PLACES
    : differsInPagesOnly(left, right)
      ? FAILED_PAGES
      : [...dataKinds(a.data, b.data), ...errorKinds(a.errors, b.errors)].join('; ');
  return { kind: kind || 'the order of keys', left: leftText, right: rightText };
}

/** The kind of a difference in which one side reports the same errors further up, and has null there. */
export const ERROR_PLACES = 'error places';

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

/**
 * The kind of a difference in which one side has no page, since one of its records fails, and the other has those of its
 * records that do not fail or that nobody asked for.
 */
export const FAILED_PAGES = 'failed pages';

function differsInPagesOnly(left: Answer, right: Answer): boolean {
  const failed = (left.errors ?? []).filter(({ message }) => FAILING_RECORD.test(message));
  const [a, b] = [left, right].map((answer) => {
    const data = structuredClone(withoutCursors(answer.data));
    for (const { path = [] } of failed) clear(data, path);
    const errors = (answer.errors ?? []).filter(
      (error) => !failed.some(({ path = [] }) => isBelow(error.path ?? [], path)),
    );
    return JSON.stringify(comparable({ data, errors }));
  });
  return failed.length > 0 && a === b;
}

/** Of the fields of the judge's services that fail and must not be null. */
const FAILING_RECORD = /^No (?:rank|events) for/;

/** Whether one of two paths leads to a part of the other's value. */
function isBelow(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.slice(0, b.length).every((step, index) => step === b[index]);
}

function clear(data: unknown, path: readonly (string | number)[]): void {
  let value = data as Record<string | number, unknown> | null | undefined;
  for (const step of path.slice(0, -1)) value = value?.[step] as typeof value;
  const last = path.at(-1);
  if (value !== null && value !== undefined && last !== undefined) value[last] = null;
}

export function isRefused({ data }: Answer): boolean {
  return data === undefined;
}

/** Without what each side may write as it likes: the text of its cursors, locations, the order of errors. */
function comparable({ data, errors = [] }: Answer): {
  readonly data: unknown;
  readonly errors: readonly string[];
} {
  return { data: withoutCursors(data), errors: errors.map(errorText).toSorted() };
}

function withoutCursors(value: unknown): unknown {
  if (typeof value === 'string') return isCursor(value) ? '(cursor)' : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutCursors);
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, withoutCursors(inner)]),
  );
}

function errorText(error: AnsweredError): string {
  return JSON.stringify({ path: error.path, ...saidBy(error) });
}

function wordsOf(error: AnsweredError): string {
  return JSON.stringify(saidBy(error));
}

/** Of an error of the gateway only the code: its words may be better in one product than in the other. */
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

function dataKinds(left: unknown, right: unknown): string[] {
  if (JSON.stringify(left) === JSON.stringify(right)) return [];
  const [a, b] = [kindOf(left), kindOf(right)];
  if (a !== b) return [`${a} for ${b}`];
  if (a === 'list') {
    const [x, y] = [left as unknown[], right as unknown[]];
    if (x.length !== y.length)
      return [`a list of ${x.length < y.length ? 'fewer' : 'more'} records`];
    return distinct(x.flatMap((each, index) => dataKinds(each, y[index])));
  }
  if (a !== 'object') return [`another ${a}`];
  const [x, y] = [left as Record<string, unknown>, right as Record<string, unknown>];
  const keys = distinct([...Object.keys(x), ...Object.keys(y)]);
  const missing = keys.some((key) => key in x !== key in y);
  return distinct([
    ...(missing ? ['other keys'] : []),
    ...keys.flatMap((key) => (key in x && key in y ? dataKinds(x[key], y[key]) : [])),
  ]);
}

function errorKinds(left: readonly string[], right: readonly string[]): string[] {
  const [more, less] = [missingIn(right, left), missingIn(left, right)];
  return [...more.map((each) => `+ ${each}`), ...less.map((each) => `- ${each}`)];
}

function missingIn(these: readonly string[], others: readonly string[]): string[] {
  return distinct(others.filter((each) => !these.includes(each)).map(generally));
}

/** An error without what is special to the operation. */
function generally(error: string): string {
  const { message, path, extensions } = JSON.parse(error) as AnsweredError;
  const code = extensions?.['code'];
  const words = message.replaceAll(/\d+|"[^"]*"|'[^']*'/g, '_');
  return `${words}${typeof code === 'string' ? ` (${code})` : ''}${path ? '' : ' without a path'}`;
}

function kindOf(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  return Array.isArray(value) ? 'list' : typeof value;
}

function distinct(all: readonly string[]): string[] {
  return [...new Set(all)];
}
