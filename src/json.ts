import { atOnce, STEP, type Pausable } from './pausable.ts';

/**
 * A JSON value that keeps the bytes in which it was written. The reader of answers passes them on, because `JSON.parse`
 * changes values such as `1e400`, `12345678901234567890` and `{"2":0,"1":0}`.
 *
 * It is a range of the bytes, which were checked before. Its contents are looked up on demand and not kept: objects for
 * all values of an answer of 50 MB would take more than a gigabyte.
 */
export class Json {
  readonly #document: CheckedBytes;
  /** Its offset in `bytes`. */
  readonly start: number;
  readonly end: number;

  constructor(document: CheckedBytes, start: number, end: number) {
    this.#document = document;
    this.start = start;
    this.end = end;
  }

  /** The bytes of the whole document. */
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

  /** The text as it was written. */
  get raw(): string {
    return this.bytes.toString('utf8', this.start, this.end);
  }

  /** Its length in bytes. */
  get length(): number {
    return this.end - this.start;
  }

  get isNull(): boolean {
    return this.bytes[this.start] === LETTER_N;
  }

  /** Whether it has no elements or members; true for all values except lists and objects. */
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

  /** Returns the values of these keys of an object; of all keys by default. */
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

  /** Returns the elements of a list; nothing for any other value. */
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

  /** The JavaScript value, except that numbers stay as they were written. */
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

/** @returns undefined if the text is not JSON, `too deep` if it is nested more than MAX_LEVELS deep */
export function parseJson(text: string): Json | 'too deep' | undefined {
  return atOnce(jsonIn(Buffer.from(text)));
}

/** Does the same for UTF-8 bytes, in steps. */
export function* jsonIn(bytes: Buffer): Pausable<Json | 'too deep' | undefined> {
  const checked = yield* checkJson(bytes);
  if (!(checked instanceof Map)) return checked;
  const document = new CheckedBytes(bytes, checked);
  const start = afterSpace(bytes, 0);
  return new Json(document, start, document.endOf(start));
}

/**
 * Returns the values of these keys of an object, as they were written, without parsing the others. If a key is
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
  /** By the offset at which each begins. */
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

/** Returns the offset of the next key or element, or of the closing bracket. @param end of the value before */
function nextIn(bytes: Buffer, end: number): number {
  const at = afterSpace(bytes, end);
  return bytes[at] === COMMA ? afterSpace(bytes, at + 1) : at;
}

function decoded(raw: string): string {
  return raw.includes('\\') ? (JSON.parse(raw) as string) : raw.slice(1, -1);
}

/**
 * Checks UTF-8 bytes against the grammar of JSON (RFC 8259).
 *
 * @returns the ends of large lists and objects, by their starts; undefined if the bytes are not JSON, `too deep` if
 *   they are nested more than MAX_LEVELS deep
 */
function* checkJson(bytes: Uint8Array): Pausable<Map<number, number> | 'too deep' | undefined> {
  const check = new Check(bytes);
  try {
    while (!check.goOn()) yield;
    return check.endsOfLarge;
  } catch (error) {
    if (error === TOO_DEEP) return 'too deep';
    if (error === INVALID) return undefined;
    throw error;
  }
}

/** Created once and thrown only to end a check. */
const INVALID = new Error('not JSON');
const TOO_DEEP = new Error('too deep');

/**
 * Bytes. The end of a list or an object is remembered if finding it means passing more bytes than this. Bytes in inner
 * ones whose end is remembered do not count, so deep nesting takes no more memory than flat text.
 */
const LARGE = 1024;

class Check {
  readonly #bytes: Uint8Array;
  readonly endsOfLarge = new Map<number, number>();
  /** The starts of the lists and objects that are open. */
  readonly #open: number[] = [];
  /** The number of bytes of each that are in inner ones whose end is known. */
  readonly #known: number[] = [];
  #at: number;
  /** Whether a value comes next; otherwise a comma or a closing bracket. */
  #isValue = true;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#at = afterSpace(bytes, 0);
  }

  /** Checks about 64 KB more. @returns whether the check is complete */
  goOn(): boolean {
    const until = this.#at + STEP;
    while (this.#at < until) {
      if (this.#isValue) this.#value();
      else if (this.#open.length > 0) this.#behindValue();
      else if (this.#at < this.#bytes.length) throw INVALID;
      else return true;
    }
    return false;
  }

  #value(): void {
    const bytes = this.#bytes;
    const byte = bytes[this.#at]!;
    if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
      const first = firstIn(bytes, this.#at);
      this.#open.push(this.#at);
      this.#known.push(0);
      if (this.#open.length > MAX_LEVELS) throw TOO_DEEP;
      this.#at = first;
      if (bytes[first] === byte + 2) this.#close(first);
      else if (byte === OPEN_OBJECT) this.#key();
      return;
    }
    this.#at = afterSpace(bytes, valid(scanScalar(bytes, this.#at)));
    this.#isValue = false;
  }

  /** Checks the comma or closing bracket behind a value. */
  #behindValue(): void {
    const bytes = this.#bytes;
    const open = bytes[this.#open.at(-1)!]!;
    const byte = bytes[this.#at];
    if (byte === open + 2) return this.#close(this.#at);
    if (byte !== COMMA) throw INVALID;
    this.#at = afterSpace(bytes, this.#at + 1);
    if (open === OPEN_OBJECT) this.#key();
    this.#isValue = true;
  }

  /** @param at of the closing bracket */
  #close(at: number): void {
    const start = this.#open.pop()!;
    let known = this.#known.pop()!;
    const length = at + 1 - start;
    if (length - known >= LARGE) {
      this.endsOfLarge.set(start, at + 1);
      known = length;
    }
    const around = this.#known.length - 1;
    if (around >= 0) this.#known[around]! += known;
    this.#at = afterSpace(this.#bytes, at + 1);
    this.#isValue = false;
  }

  #key(): void {
    const bytes = this.#bytes;
    const colon = afterSpace(bytes, valid(scanString(bytes, this.#at)));
    if (bytes[colon] !== COLON) throw INVALID;
    this.#at = afterSpace(bytes, colon + 1);
  }
}

function valid(end: number): number {
  if (end < 0) throw INVALID;
  return end;
}

/** Nested lists and objects. The limit protects the stack: reading an answer is recursive. */
export const MAX_LEVELS = 500;

const [SPACE, TAB, LINE_FEED, RETURN] = [32, 9, 10, 13];
const [QUOTE, BACKSLASH, COMMA, COLON] = [34, 92, 44, 58];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [91, 93, 123, 125];
const [LETTER_F, LETTER_N, LETTER_T] = [102, 110, 116];

/*
 * Each of these returns the end of the token that begins at an offset, or -1. Bytes behind the end of the text are
 * undefined, which fails every comparison.
 */

/** @param at of an `n` */
export function scanNull(bytes: Uint8Array, at: number): number {
  return bytes[at + 1] === 117 && bytes[at + 2] === 108 && bytes[at + 3] === 108 ? at + 4 : -1;
}

export function scanBoolean(bytes: Uint8Array, at: number): number {
  if (matches(bytes, at, TRUE)) return at + 4;
  return matches(bytes, at, FALSE) ? at + 5 : -1;
}

export function matches(bytes: Uint8Array, at: number, text: Uint8Array): boolean {
  for (let i = 0; i < text.length; i += 1) if (bytes[at + i] !== text[i]) return false;
  return true;
}

const [TRUE, FALSE] = [Buffer.from('true'), Buffer.from('false')];

export function scanString(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== 34) return -1;
  for (let end = at + 1; ; end += 1) {
    const byte = bytes[end]!;
    if (byte === 34) return end + 1;
    if (byte === 92) {
      const length = escapeLength(bytes, end);
      if (length < 0) return -1;
      end += length - 1;
    } else if (!(byte >= 32)) return -1; // A control character, or undefined behind the end.
  }
}

function escapeLength(bytes: Uint8Array, at: number): number {
  const byte = bytes[at + 1]!;
  if (byte !== 117) {
    // " / \ b f n r t
    const isKnown = byte === 34 || byte === 47 || byte === 92 || byte === 98 || byte === 102;
    return isKnown || byte === 110 || byte === 114 || byte === 116 ? 2 : -1;
  }
  for (let i = 2; i < 6; i += 1) if (!isHexDigit(bytes[at + i]!)) return -1;
  return 6;
}

function isHexDigit(byte: number): boolean {
  return (byte >= 48 && byte <= 57) || (byte >= 97 && byte <= 102) || (byte >= 65 && byte <= 70);
}

export function scanNumber(bytes: Uint8Array, at: number): number {
  let end = scanDigits(bytes, at);
  if (end >= 0 && bytes[end] === 46) end = scanMore(bytes, end + 1);
  if (end >= 0 && (bytes[end] === 101 || bytes[end] === 69)) {
    const hasSign = bytes[end + 1] === 43 || bytes[end + 1] === 45;
    end = scanMore(bytes, end + (hasSign ? 2 : 1));
  }
  return end;
}

/** The digits of a number before its fraction and exponent. */
export function scanDigits(bytes: Uint8Array, at: number): number {
  const start = bytes[at] === 45 ? at + 1 : at;
  let end = start;
  while (bytes[end]! >= 48 && bytes[end]! <= 57) end += 1;
  return end === start || (bytes[start] === 48 && end > start + 1) ? -1 : end;
}

function scanMore(bytes: Uint8Array, at: number): number {
  let end = at;
  while (bytes[end]! >= 48 && bytes[end]! <= 57) end += 1;
  return end === at ? -1 : end;
}

/** Scans a value that is neither a list nor an object. */
export function scanScalar(bytes: Uint8Array, at: number): number {
  const byte = bytes[at];
  if (byte === 34) return scanString(bytes, at);
  if (byte === 110) return scanNull(bytes, at);
  return byte === 116 || byte === 102 ? scanBoolean(bytes, at) : scanNumber(bytes, at);
}

/** Returns the offset of the first key or element, or of the bracket that closes an empty object or list. */
function firstIn(bytes: Uint8Array, open: number): number {
  return afterSpace(bytes, open + 1);
}

function afterSpace(bytes: Uint8Array, start: number): number {
  let at = start;
  while (isSpace(bytes[at])) at += 1;
  return at;
}

function isSpace(byte: number | undefined): boolean {
  return byte === SPACE || byte === LINE_FEED || byte === RETURN || byte === TAB;
}

/** Removes white space, except between two values: `1 2` must not become a number. */
export function* withoutSpace(bytes: Buffer): Pausable<Buffer> {
  let size = 0;
  let out: Buffer | undefined;
  let from = 0;
  let pauseAt = STEP;
  for (let at = 0; at < bytes.length; at += 1) {
    if (at > pauseAt) {
      pauseAt = at + STEP;
      yield;
    }
    const byte = bytes[at]!;
    if (byte === QUOTE) {
      const end = scanString(bytes, at);
      if (end < 0) return bytes;
      at = end - 1;
      continue;
    }
    if (!isSpace(byte)) continue;
    const end = afterSpace(bytes, at);
    if (isMark(bytes[at - 1]) || isMark(bytes[end])) {
      out ??= Buffer.allocUnsafeSlow(bytes.length);
      size += bytes.copy(out, size, from, at);
      from = end;
    }
    at = end - 1;
  }
  if (!out) return bytes;
  size += bytes.copy(out, size, from);
  // A copy, because records may be kept for long, and indented JSON is twice as large.
  const compact = Buffer.allocUnsafeSlow(size);
  out.copy(compact, 0, 0, size);
  return compact;
}

/** Whether it is one of `[ ] { } : ,` or the end of the text. */
function isMark(byte: number | undefined): boolean {
  if (byte === undefined || byte === COMMA || byte === COLON) return true;
  // In ASCII, square and curly brackets differ in one bit.
  const curly = byte | 0x20;
  return curly === OPEN_OBJECT || curly === CLOSE_OBJECT;
}

/**
 * Whether `JSON.parse` loses how a text was written: a number that JavaScript would write differently, such as one with
 * more digits than it can hold, `1e5`, `1.0` and `-0`; or a key such as `"2"`, which it would put before the others.
 *
 * @param text JSON that `JSON.parse` accepts
 */
export function losesWriting(text: string): boolean {
  for (let at = 0; ;) {
    const quote = text.indexOf('"', at);
    if (losesNumber(text, at, quote < 0 ? text.length : quote)) return true;
    if (quote < 0) return false;
    // Nearly all strings end here, and `indexOf` costs less than checking each character.
    const next = text.indexOf('"', quote + 1);
    at = text.charCodeAt(next - 1) === BACKSLASH ? endOfString(text, quote) : next + 1;
    if (!isIndex(text, quote, at)) continue;
    KEY_END.lastIndex = at;
    if (KEY_END.test(text)) return true;
  }
}

/** The end of a key: optional white space and a colon. */
const KEY_END = /\s*:/y;

/** Whether a number is lost in a part of a text that contains no strings. */
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

/** JavaScript holds all whole numbers of up to this many digits. */
const SAFE_DIGITS = 15;
const [PLUS, MINUS, POINT, LARGE_E, SMALL_E, ZERO, NINE] = [43, 45, 46, 69, 101, 48, 57];

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}

/** Whether JavaScript puts this key before all keys that are not indexes, whatever their order was. */
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
