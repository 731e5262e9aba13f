import { isLongInteger, parseExactly } from '../engine/json.ts';

/** A value of an answer, of which any part may be missing. */
export class Json {
  readonly #value: unknown;

  constructor(value: unknown) {
    this.#value = value;
  }

  get kind(): 'object' | 'list' | 'string' | 'number' | 'boolean' | 'null' {
    const value = this.#value;
    if (value === null) return 'null';
    if (Array.isArray(value)) return 'list';
    if (typeof value !== 'object') return typeof value as 'string' | 'number' | 'boolean';
    return isLongInteger(value) ? 'number' : 'object';
  }

  /** As JSON. Integers that JavaScript cannot represent keep their digits. */
  get raw(): string {
    return JSON.stringify(this.#value);
  }

  get string(): string | undefined {
    return typeof this.#value === 'string' ? this.#value : undefined;
  }

  get isNull(): boolean {
    return this.#value === null;
  }

  /** Whether an object has no members, or a list no elements. */
  get isEmpty(): boolean {
    return Object.keys(this.#value as object).length === 0;
  }

  get(key: string): Json | undefined {
    return this.members().get(key);
  }

  /** The members of an object. */
  members(): ReadonlyMap<string, Json> {
    if (this.kind !== 'object') return new Map();
    return new Map(
      Object.entries(this.#value as object).map(([key, value]) => [key, new Json(value)]),
    );
  }

  /** The elements of a list. */
  elements(): readonly Json[] {
    return Array.isArray(this.#value) ? this.#value.map((value) => new Json(value)) : [];
  }
}

/** @returns undefined for a text that is not JSON */
export function parseJson(text: string): Json | undefined {
  try {
    return new Json(parseExactly(text));
  } catch {
    return undefined;
  }
}
