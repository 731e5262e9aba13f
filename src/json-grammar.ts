import { STEP, type Pausable } from './pausable.ts';

/** Nested lists and objects. The limit protects the stack: reading an answer is recursive. */
export const MAX_LEVELS = 500;

/**
 * Checks a text against the grammar of JSON (RFC 8259).
 *
 * @returns the ends of large lists and objects, by their starts; undefined when the text is not JSON, `too deep` when
 *   it is nested more than MAX_LEVELS deep
 */
export function* checkJson(text: string): Pausable<Map<number, number> | 'too deep' | undefined> {
  const check = new Check(text);
  try {
    while (!check.goOn()) yield;
    return check.endsOfLarge();
  } catch (error) {
    if (error === TOO_DEEP) return 'too deep';
    if (error === INVALID) return undefined;
    throw error;
  }
}

/** Created once and thrown only to end a check. */
const INVALID = new Error('not JSON');
const TOO_DEEP = new Error('too deep');

export const [SPACE, TAB, LINE_FEED, RETURN] = [32, 9, 10, 13];
export const [QUOTE, BACKSLASH, COMMA, COLON] = [34, 92, 44, 58];
export const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [91, 93, 123, 125];
export const [LETTER_F, LETTER_N, LETTER_T] = [102, 110, 116];

/**
 * The end of a list or an object is remembered if so many characters of it would have to be passed to find it: those in
 * inner ones whose end is remembered do not count. So deep nesting takes no more memory than the same text without it.
 */
const LARGE = 1024;

class Check {
  readonly #text: string;
  readonly #endsOfLarge = new Map<number, number>();
  /** The starts of the lists and objects that are open. */
  readonly #open: number[] = [];
  /** How many characters of each are in inner ones whose end is known. */
  readonly #known: number[] = [];
  #at: number;
  /** Whether a value comes next; otherwise, what follows a value. */
  #isValue = true;

  constructor(text: string) {
    this.#text = text;
    this.#at = afterSpace(text, 0);
  }

  /** Checks about 64 K characters more. @returns whether that was all */
  goOn(): boolean {
    const until = this.#at + STEP;
    while (this.#at < until) {
      if (this.#isValue) this.#value();
      else if (this.#open.length > 0) this.#behindValue();
      else if (this.#at < this.#text.length) throw INVALID;
      else return true;
    }
    return false;
  }

  endsOfLarge(): Map<number, number> {
    return this.#endsOfLarge;
  }

  #value(): void {
    const text = this.#text;
    const code = text.charCodeAt(this.#at);
    if (code === OPEN_OBJECT || code === OPEN_LIST) {
      const first = firstIn(text, this.#at);
      this.#open.push(this.#at);
      this.#known.push(0);
      if (this.#open.length > MAX_LEVELS) throw TOO_DEEP;
      this.#at = first;
      if (text.charCodeAt(first) === code + 2) this.#close(first);
      else if (code === OPEN_OBJECT) this.#key();
      return;
    }
    if (code === QUOTE) this.#string();
    else if (code === LETTER_T) this.#word('true');
    else if (code === LETTER_F) this.#word('false');
    else if (code === LETTER_N) this.#word('null');
    else this.#number();
    this.#at = afterSpace(text, this.#at);
    this.#isValue = false;
  }

  /** Checks the comma or closing bracket behind a value. */
  #behindValue(): void {
    const text = this.#text;
    const open = text.charCodeAt(this.#open.at(-1)!);
    const code = text.charCodeAt(this.#at);
    if (code === open + 2) return this.#close(this.#at);
    if (code !== COMMA) throw INVALID;
    this.#at = afterSpace(text, this.#at + 1);
    if (open === OPEN_OBJECT) this.#key();
    this.#isValue = true;
  }

  /** @param at of the closing bracket */
  #close(at: number): void {
    const start = this.#open.pop()!;
    let known = this.#known.pop()!;
    const length = at + 1 - start;
    if (length - known >= LARGE) {
      this.#endsOfLarge.set(start, at + 1);
      known = length;
    }
    const around = this.#known.length - 1;
    if (around >= 0) this.#known[around]! += known;
    this.#at = afterSpace(this.#text, at + 1);
    this.#isValue = false;
  }

  #key(): void {
    const text = this.#text;
    if (text.charCodeAt(this.#at) !== QUOTE) throw INVALID;
    this.#string();
    const colon = afterSpace(text, this.#at);
    if (text.charCodeAt(colon) !== COLON) throw INVALID;
    this.#at = afterSpace(text, colon + 1);
  }

  #string(): void {
    const text = this.#text;
    for (let at = this.#at + 1; ; at += 1) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        this.#at = at + 1;
        return;
      }
      if (code === BACKSLASH) {
        ESCAPE.lastIndex = at;
        if (!ESCAPE.test(text)) throw INVALID;
        at = ESCAPE.lastIndex - 1;
      } else if (!(code >= SPACE)) {
        // A control character, or the end of the text.
        throw INVALID;
      }
    }
  }

  #word(word: string): void {
    if (!this.#text.startsWith(word, this.#at)) throw INVALID;
    this.#at += word.length;
  }

  #number(): void {
    NUMBER.lastIndex = this.#at;
    if (!NUMBER.test(this.#text)) throw INVALID;
    this.#at = NUMBER.lastIndex;
  }
}

const ESCAPE = /\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4})/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/** The place of the first key or element, or of the bracket that closes an empty object or list. */
export function firstIn(text: string, open: number): number {
  return afterSpace(text, open + 1);
}

export function afterSpace(text: string, start: number): number {
  for (let at = start; ; at += 1) {
    const code = text.charCodeAt(at);
    if (code !== SPACE && code !== LINE_FEED && code !== RETURN && code !== TAB) return at;
  }
}
