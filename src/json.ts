/**
 * A JSON value that keeps the text it was written as. The general reading passes that text on, because `JSON.parse`
 * changes values such as `1e400`, `12345678901234567890` and `{"2":0,"1":0}`.
 */
export class Json {
  readonly kind: 'object' | 'list' | 'string' | 'number' | 'boolean' | 'null';
  /** Of an object, one for each of `values`. If a key is repeated, its last value counts. */
  readonly keys: readonly string[];
  /** Of an object or a list. */
  readonly values: readonly Json[];
  readonly #text: string;
  readonly #start: number;
  readonly #end: number;

  constructor(
    kind: Json['kind'],
    text: string,
    [start, end]: readonly [number, number],
    inner = NOTHING,
  ) {
    this.kind = kind;
    this.keys = inner.keys;
    this.values = inner.values;
    this.#text = text;
    this.#start = start;
    this.#end = end;
  }

  /** As it was written. */
  get raw(): string {
    return this.#text.slice(this.#start, this.#end);
  }

  /** Returns the value of an object's key. */
  get(key: string): Json | undefined {
    const at = this.keys.lastIndexOf(key);
    return at < 0 ? undefined : this.values[at];
  }

  /** The decoded text of a string; undefined for any other value. */
  get string(): string | undefined {
    if (this.kind !== 'string') return undefined;
    const { raw } = this;
    return raw.includes('\\') ? (JSON.parse(raw) as string) : raw.slice(1, -1);
  }

  /** As a value of JavaScript, except that numbers stay as they were written. */
  get value(): unknown {
    switch (this.kind) {
      case 'object':
        return Object.fromEntries(this.keys.map((key, at) => [key, this.values[at]!.value]));
      case 'list':
        return this.values.map(({ value }) => value);
      case 'string':
        return this.string;
      case 'number':
        return this;
      default:
        return JSON.parse(this.raw);
    }
  }

  get isNull(): boolean {
    return this.kind === 'null';
  }
}

const NOTHING: { keys: readonly string[]; values: readonly Json[] } = { keys: [], values: [] };

/** Nested lists and objects. The limit protects the stack: reading an answer is recursive. */
export const MAX_LEVELS = 500;

/** @returns undefined when the text is not JSON, `too deep` when it is nested more than 500 levels deep */
export function parseJson(text: string): Json | 'too deep' | undefined {
  const parser = new Parser(text);
  try {
    return parser.document();
  } catch (error) {
    if (error === TOO_DEEP) return 'too deep';
    if (error === INVALID) return undefined;
    throw error;
  }
}

/**
 * Returns the values of these keys of an object, as they were written; nothing is made of the others. If a key is
 * repeated, its last value counts.
 *
 * @param text JSON that `JSON.parse` has accepted; only an object has members
 */
export function membersIn(text: string, keys: ReadonlySet<string>): Map<string, string> {
  return new Parser(text).members(keys);
}

/** Created once and thrown only to leave the parser. */
const INVALID = new Error('not JSON');
const TOO_DEEP = new Error('too deep');

const [SPACE, TAB, LINE_FEED, RETURN] = [32, 9, 10, 13];
const [QUOTE, BACKSLASH, COMMA, COLON] = [34, 92, 44, 58];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [91, 93, 123, 125];

class Parser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): Json {
    this.#skipSpace();
    const value = this.#value(0);
    this.#skipSpace();
    if (this.#at < this.#text.length) throw INVALID;
    return value;
  }

  members(keys: ReadonlySet<string>): Map<string, string> {
    const members = new Map<string, string>();
    this.#skipSpace();
    if (this.#text.charCodeAt(this.#at) !== OPEN_OBJECT) return members;
    for (let isFirst = true; !this.#hasEnded(CLOSE_OBJECT, isFirst); isFirst = false) {
      const key = this.#key();
      const start = this.#at;
      this.#skipValue();
      if (keys.has(key)) members.set(key, this.#text.slice(start, this.#at));
    }
    return members;
  }

  #value(level: number): Json {
    switch (this.#text.charCodeAt(this.#at)) {
      case OPEN_OBJECT:
        return this.#object(level + 1);
      case OPEN_LIST:
        return this.#list(level + 1);
      case QUOTE: {
        const start = this.#at;
        this.#skipString();
        return new Json('string', this.#text, [start, this.#at]);
      }
      default:
        return (
          this.#word('true', 'boolean') ??
          this.#word('false', 'boolean') ??
          this.#word('null', 'null') ??
          this.#number()
        );
    }
  }

  #object(level: number): Json {
    if (level > MAX_LEVELS) throw TOO_DEEP;
    const start = this.#at;
    const keys: string[] = [];
    const values: Json[] = [];
    for (let isFirst = true; !this.#hasEnded(CLOSE_OBJECT, isFirst); isFirst = false) {
      keys.push(this.#key());
      values.push(this.#value(level));
    }
    return new Json('object', this.#text, [start, this.#at], { keys, values });
  }

  /** Reads a key, and skips the colon behind it and the space around that. */
  #key(): string {
    const start = this.#at;
    if (this.#text.charCodeAt(start) !== QUOTE) throw INVALID;
    const hasEscape = this.#skipString();
    const raw = this.#text.slice(start, this.#at);
    this.#skipSpace();
    if (this.#text.charCodeAt(this.#at) !== COLON) throw INVALID;
    this.#at += 1;
    this.#skipSpace();
    return hasEscape ? (JSON.parse(raw) as string) : raw.slice(1, -1);
  }

  #list(level: number): Json {
    if (level > MAX_LEVELS) throw TOO_DEEP;
    const start = this.#at;
    const values: Json[] = [];
    for (let isFirst = true; !this.#hasEnded(CLOSE_LIST, isFirst); isFirst = false) {
      values.push(this.#value(level));
    }
    return new Json('list', this.#text, [start, this.#at], { keys: [], values });
  }

  /** Skips the bracket or comma before the next element, and the space around it. */
  #hasEnded(close: number, isFirst: boolean): boolean {
    if (isFirst) this.#at += 1;
    this.#skipSpace();
    const code = this.#text.charCodeAt(this.#at);
    if (code === close) {
      this.#at += 1;
      return true;
    }
    if (isFirst) return false;
    if (code !== COMMA) throw INVALID;
    this.#at += 1;
    this.#skipSpace();
    return false;
  }

  /** However deep the value is. */
  #skipValue(): void {
    const text = this.#text;
    let level = 0;
    do {
      const code = text.charCodeAt(this.#at);
      if (code === QUOTE) this.#skipString();
      else if (level === 0 && code !== OPEN_LIST && code !== OPEN_OBJECT) this.#value(0);
      else {
        if (code === OPEN_LIST || code === OPEN_OBJECT) level += 1;
        else if (code === CLOSE_LIST || code === CLOSE_OBJECT) level -= 1;
        this.#at += 1;
      }
    } while (level > 0 && this.#at < text.length);
  }

  /** @returns whether the string has an escape */
  #skipString(): boolean {
    const text = this.#text;
    let hasEscape = false;
    let at = this.#at + 1;
    for (; ; at += 1) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) break;
      if (code === BACKSLASH) {
        ESCAPE.lastIndex = at;
        const [escape] = ESCAPE.exec(text) ?? [];
        if (escape === undefined) throw INVALID;
        hasEscape = true;
        at += escape.length - 1;
      } else if (!(code >= SPACE)) {
        // A control character, or the end of the text.
        throw INVALID;
      }
    }
    this.#at = at + 1;
    return hasEscape;
  }

  #word(word: string, kind: Json['kind']): Json | undefined {
    if (!this.#text.startsWith(word, this.#at)) return undefined;
    const start = this.#at;
    this.#at += word.length;
    return new Json(kind, this.#text, [start, this.#at]);
  }

  #number(): Json {
    NUMBER.lastIndex = this.#at;
    const [number] = NUMBER.exec(this.#text) ?? [];
    if (number === undefined) throw INVALID;
    const start = this.#at;
    this.#at += number.length;
    return new Json('number', this.#text, [start, this.#at]);
  }

  #skipSpace(): void {
    for (; ; this.#at += 1) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== SPACE && code !== LINE_FEED && code !== RETURN && code !== TAB) return;
    }
  }
}

const ESCAPE = /\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4})/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
