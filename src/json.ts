import {
  afterSpace,
  BACKSLASH,
  checkJson,
  CLOSE_LIST,
  CLOSE_OBJECT,
  COMMA,
  firstIn,
  LETTER_F,
  LETTER_N,
  LETTER_T,
  OPEN_LIST,
  OPEN_OBJECT,
  QUOTE,
  scanScalar,
  scanString,
} from './json-grammar.ts';
import { atOnce, type Pausable } from './pausable.ts';

/**
 * A JSON value that keeps the bytes it was written as. The reader of answers passes them on, because `JSON.parse`
 * changes values such as `1e400`, `12345678901234567890` and `{"2":0,"1":0}`.
 *
 * It is a place in the bytes, which were checked before. What is inside is looked up when it is asked for, and not kept:
 * objects for all values of an answer of 50 MB would take more than a gigabyte.
 */
export class Json {
  readonly #document: CheckedBytes;
  /** Its place in `bytes`. */
  readonly start: number;
  readonly end: number;

  constructor(document: CheckedBytes, start: number, end: number) {
    this.#document = document;
    this.start = start;
    this.end = end;
  }

  /** Of the whole document. */
  get bytes(): Buffer {
    return this.#document.bytes;
  }

  get kind(): 'object' | 'list' | 'string' | 'number' | 'boolean' | 'null' {
    switch (this.bytes[this.start]) {
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
    return this.bytes.toString('utf8', this.start, this.end);
  }

  /** Bytes. */
  get length(): number {
    return this.end - this.start;
  }

  get isNull(): boolean {
    return this.bytes[this.start] === LETTER_N;
  }

  /** Whether it has neither elements nor members: true of all that is no list or object. */
  get isEmpty(): boolean {
    const { bytes, start } = this;
    const open = bytes[start]!;
    if (open !== OPEN_LIST && open !== OPEN_OBJECT) return true;
    return bytes[firstIn(bytes, start)] === open + 2;
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
    const { bytes } = document;
    for (let at = firstIn(bytes, this.start); bytes[at] !== CLOSE_OBJECT;) {
      const keyEnd = scanString(bytes, at);
      const key = decoded(bytes.toString('utf8', at, keyEnd));
      const start = afterSpace(bytes, afterSpace(bytes, keyEnd) + 1);
      const end = document.endOf(start);
      if (!keys || keys.has(key)) members.set(key, new Json(document, start, end));
      at = nextIn(bytes, end);
    }
    return members;
  }

  /** The elements of a list; none of any other value. */
  *elements(): Generator<Json, undefined, undefined> {
    if (this.kind !== 'list') return;
    const document = this.#document;
    const { bytes } = document;
    for (let at = firstIn(bytes, this.start); bytes[at] !== CLOSE_LIST;) {
      const end = document.endOf(at);
      yield new Json(document, at, end);
      at = nextIn(bytes, end);
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
  return atOnce(jsonIn(Buffer.from(text)));
}

/** Does the same with UTF-8 bytes, in steps. */
export function* jsonIn(bytes: Buffer): Pausable<Json | 'too deep' | undefined> {
  const checked = yield* checkJson(bytes);
  if (!(checked instanceof Map)) return checked;
  const document = new CheckedBytes(bytes, checked);
  const start = afterSpace(bytes, 0);
  return new Json(document, start, document.endOf(start));
}

/**
 * Returns the values of these keys of an object, as they were written; nothing is made of the others. If a key is
 * repeated, its last value counts.
 *
 * @param text JSON that `JSON.parse` has accepted, however deep it is; only an object has members
 */
export function membersIn(text: string, keys: ReadonlySet<string>): Map<string, string> {
  const document = new CheckedBytes(Buffer.from(text), new Map());
  const { bytes } = document;
  const whole = new Json(document, afterSpace(bytes, 0), bytes.length);
  return new Map(Array.from(whole.members(keys), ([key, { raw }]) => [key, raw]));
}

class CheckedBytes {
  readonly bytes: Buffer;
  /** By their starts. */
  readonly #endsOfLarge: ReadonlyMap<number, number>;

  constructor(bytes: Buffer, endsOfLarge: ReadonlyMap<number, number>) {
    this.bytes = bytes;
    this.#endsOfLarge = endsOfLarge;
  }

  /** Returns the end of the value that begins here. */
  endOf(start: number): number {
    const { bytes } = this;
    let level = 0;
    for (let at = start; ; at += 1) {
      const byte = bytes[at];
      if (byte === QUOTE) at = scanString(bytes, at) - 1;
      else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
        const end = this.#endsOfLarge.get(at);
        if (end === undefined) level += 1;
        else at = end - 1;
      } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) level -= 1;
      else if (level === 0) return scanScalar(bytes, at);
      if (level === 0) return at + 1;
    }
  }
}

/** The place of the next key or element, or of the closing bracket. @param end of the value before */
function nextIn(bytes: Buffer, end: number): number {
  const at = afterSpace(bytes, end);
  return bytes[at] === COMMA ? afterSpace(bytes, at + 1) : at;
}

function decoded(raw: string): string {
  return raw.includes('\\') ? (JSON.parse(raw) as string) : raw.slice(1, -1);
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
    if (!isIndex(text, quote, at)) continue;
    KEY_END.lastIndex = at;
    if (KEY_END.test(text)) return true;
  }
}

/** What follows a key. */
const KEY_END = /\s*:/y;

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

function endOfString(text: string, start: number): number {
  for (let at = start + 1; ; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (code === BACKSLASH) at += 1;
  }
}
