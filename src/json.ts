import {
  afterSpace,
  BACKSLASH,
  checkJson,
  CLOSE_LIST,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  firstIn,
  LETTER_F,
  LETTER_N,
  LETTER_T,
  OPEN_LIST,
  OPEN_OBJECT,
  QUOTE,
  SPACE,
} from './json-grammar.ts';
import { atOnce, type Pausable } from './pausable.ts';

/**
 * A JSON value that keeps the text it was written as. The general reading passes that text on, because `JSON.parse`
 * changes values such as `1e400`, `12345678901234567890` and `{"2":0,"1":0}`.
 *
 * It is a place in the text, which was checked before. What is inside is looked up when it is asked for, and not kept:
 * objects for all values of an answer of 50 MB would take more than a gigabyte.
 */
export class Json {
  readonly #document: CheckedText;
  readonly #start: number;
  readonly #end: number;

  constructor(document: CheckedText, start: number, end: number) {
    this.#document = document;
    this.#start = start;
    this.#end = end;
  }

  get kind(): 'object' | 'list' | 'string' | 'number' | 'boolean' | 'null' {
    switch (this.#document.text.charCodeAt(this.#start)) {
      case OPEN_OBJECT:
        return 'object';
      case OPEN_LIST:
        return 'list';
      case QUOTE:
        return 'string';
      case LETTER_T:
      case LETTER_F:
        return 'boolean';
      case LETTER_N:
        return 'null';
      default:
        return 'number';
    }
  }

  /** As it was written. */
  get raw(): string {
    return this.#document.text.slice(this.#start, this.#end);
  }

  /** Of `raw`. */
  get length(): number {
    return this.#end - this.#start;
  }

  get isNull(): boolean {
    return this.#document.text.charCodeAt(this.#start) === LETTER_N;
  }

  /** Whether it has neither elements nor members: true of all that is no list or object. */
  get isEmpty(): boolean {
    const { text } = this.#document;
    const open = text.charCodeAt(this.#start);
    if (open !== OPEN_LIST && open !== OPEN_OBJECT) return true;
    const code = text.charCodeAt(firstIn(text, this.#start));
    return code === CLOSE_LIST || code === CLOSE_OBJECT;
  }

  /** The decoded text of a string; undefined for any other value. */
  get string(): string | undefined {
    return this.kind === 'string' ? decoded(this.raw) : undefined;
  }

  /** Returns the value of an object's key. If the key is repeated, its last value counts. */
  get(key: string): Json | undefined {
    return this.members(new Set([key])).get(key);
  }

  /** The values of these keys of an object; of all keys by default. */
  members(keys?: ReadonlySet<string>): Map<string, Json> {
    const members = new Map<string, Json>();
    if (this.kind !== 'object') return members;
    const document = this.#document;
    const { text } = document;
    for (let at = firstIn(text, this.#start); text.charCodeAt(at) !== CLOSE_OBJECT;) {
      const keyEnd = endOfString(text, at);
      const key = decoded(text.slice(at, keyEnd));
      const start = afterSpace(text, afterSpace(text, keyEnd) + 1);
      const end = document.endOf(start);
      if (!keys || keys.has(key)) members.set(key, new Json(document, start, end));
      at = nextIn(text, end);
    }
    return members;
  }

  /** The elements of a list; none of any other value. */
  *elements(): Generator<Json, undefined, undefined> {
    if (this.kind !== 'list') return;
    const document = this.#document;
    const { text } = document;
    for (let at = firstIn(text, this.#start); text.charCodeAt(at) !== CLOSE_LIST;) {
      const end = document.endOf(at);
      yield new Json(document, at, end);
      at = nextIn(text, end);
    }
  }

  /** As a value of JavaScript, except that numbers stay as they were written. */
  get value(): unknown {
    switch (this.kind) {
      case 'object':
        return Object.fromEntries(Array.from(this.members(), ([key, { value }]) => [key, value]));
      case 'list':
        return Array.from(this.elements(), ({ value }) => value);
      case 'string':
        return this.string;
      case 'number':
        return this;
      default:
        return JSON.parse(this.raw);
    }
  }
}

/** @returns undefined when the text is not JSON, `too deep` when it is nested more than MAX_LEVELS deep */
export function parseJson(text: string): Json | 'too deep' | undefined {
  return atOnce(jsonIn(text));
}

/** Does the same in steps. */
export function* jsonIn(text: string): Pausable<Json | 'too deep' | undefined> {
  const checked = yield* checkJson(text);
  if (!(checked instanceof Map)) return checked;
  const document = new CheckedText(text, checked);
  const start = afterSpace(text, 0);
  return new Json(document, start, document.endOf(start));
}

/**
 * Returns the values of these keys of an object, as they were written; nothing is made of the others. If a key is
 * repeated, its last value counts.
 *
 * @param text JSON that `JSON.parse` has accepted, however deep it is; only an object has members
 */
export function membersIn(text: string, keys: ReadonlySet<string>): Map<string, string> {
  const whole = new Json(new CheckedText(text, new Map()), afterSpace(text, 0), text.length);
  return new Map(Array.from(whole.members(keys), ([key, { raw }]) => [key, raw]));
}

/**
 * Whether `JSON.parse` loses how a text was written: a number that JavaScript would write in another way, such as one
 * with more digits than it can hold, `1e5`, `1.0` and `-0`; or a key such as `"2"`, which it would put before the others.
 *
 * @param text JSON that `JSON.parse` accepts
 */
export function losesWriting(text: string): boolean {
  for (let at = 0; ;) {
    const quote = text.indexOf('"', at);
    if (losesNumber(text, at, quote < 0 ? text.length : quote)) return true;
    if (quote < 0) return false;
    // Nearly all strings end here, and a search costs less than a look at each character.
    const next = text.indexOf('"', quote + 1);
    at = text.charCodeAt(next - 1) === BACKSLASH ? endOfString(text, quote) : next + 1;
    if (text.charCodeAt(afterSpace(text, at)) === COLON && isIndex(text, quote, at)) return true;
  }
}

/** Whether a number is lost in a part of a text in which no string is. */
function losesNumber(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) {
    const first = text.charCodeAt(at);
    if (first !== MINUS && !isDigit(first)) continue;
    const number = at;
    let isPlain = first !== MINUS;
    for (at += 1; at < end; at += 1) {
      const code = text.charCodeAt(at);
      if (isDigit(code)) continue;
      if (code !== POINT && code !== PLUS && code !== MINUS && code !== SMALL_E && code !== LARGE_E)
        break;
      isPlain = false;
    }
    if (isPlain && at - number <= SAFE_DIGITS) continue;
    const written = text.slice(number, at);
    if (String(Number(written)) !== written) return true;
  }
  return false;
}

/** JavaScript holds all whole numbers with so many digits. */
const SAFE_DIGITS = 15;
const [PLUS, MINUS, POINT, LARGE_E, SMALL_E, ZERO, NINE] = [43, 45, 46, 69, 101, 48, 57];

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}

/** Whether JavaScript puts a key before all others that are not indexes, whatever their order was. */
function isIndex(text: string, start: number, end: number): boolean {
  const first = text.charCodeAt(start + 1);
  if (!isDigit(first) && first !== BACKSLASH) return false;
  const key = decoded(text.slice(start, end));
  const index = Number(key);
  return String(index) === key && Number.isInteger(index) && index >= 0 && index < 2 ** 32 - 1;
}

class CheckedText {
  readonly text: string;
  /** By their starts. */
  readonly #endsOfLarge: ReadonlyMap<number, number>;

  constructor(text: string, endsOfLarge: ReadonlyMap<number, number>) {
    this.text = text;
    this.#endsOfLarge = endsOfLarge;
  }

  /** Returns the end of the value that begins here. */
  endOf(start: number): number {
    const { text } = this;
    const code = text.charCodeAt(start);
    if (code === QUOTE) return endOfString(text, start);
    if (code !== OPEN_LIST && code !== OPEN_OBJECT) return endOfWord(text, start);
    return this.#endOfNested(start);
  }

  #endOfNested(start: number): number {
    const { text } = this;
    let level = 0;
    for (let at = start; ; at += 1) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) at = endOfString(text, at) - 1;
      else if (code === OPEN_LIST || code === OPEN_OBJECT) {
        const end = this.#endsOfLarge.get(at);
        if (end === undefined) level += 1;
        else if (level === 0) return end;
        else at = end - 1;
      } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) {
        level -= 1;
        if (level === 0) return at + 1;
      }
    }
  }
}

function endOfString(text: string, start: number): number {
  for (let at = start + 1; ; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (code === BACKSLASH) at += 1;
  }
}

/** Of a number, `true`, `false` or `null`. */
function endOfWord(text: string, start: number): number {
  for (let at = start + 1; ; at += 1) {
    const code = text.charCodeAt(at);
    // Not above the space, or not a number: white space, or the end of the text.
    if (code === COMMA || code === CLOSE_LIST || code === CLOSE_OBJECT || !(code > SPACE))
      return at;
  }
}

/** The place of the next key or element, or of the closing bracket. @param end of the value before */
function nextIn(text: string, end: number): number {
  const at = afterSpace(text, end);
  return text.charCodeAt(at) === COMMA ? afterSpace(text, at + 1) : at;
}

function decoded(raw: string): string {
  return raw.includes('\\') ? (JSON.parse(raw) as string) : raw.slice(1, -1);
}
