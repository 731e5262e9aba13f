import { Kind, valueFromASTUntyped, type ValueNode } from 'graphql';
import { Json, losesWriting, parseJson } from '../json.ts';
import { NO_KEYS, type Keys } from './private-keys.ts';

/**
 * A number of a custom scalar that JavaScript cannot hold, such as 12345678901234567890. It is written as the service
 * wrote it. In calculations it is the nearest number, and in a text it has all of its digits.
 */
export class ExactNumber {
  readonly #written: string;

  constructor(written: string) {
    this.#written = written;
  }

  toString(): string {
    return this.#written;
  }

  valueOf(): number {
    return Number(this.#written);
  }

  toJSON(): unknown {
    return rawJson(this.#written);
  }
}

const { rawJSON: rawJson } = JSON as JSON & { readonly rawJSON: (text: string) => unknown };

/** Parses the `data` of an answer. Numbers that JavaScript cannot hold have the type that their field allows. */
export function parseExact(text: string, keys: Keys): unknown {
  if (!losesWriting(text)) return JSON.parse(text);
  const json = parseJson(text);
  return json instanceof Json ? objectOf(json, keys) : JSON.parse(text);
}

function objectOf(json: Json, keys: Keys): unknown {
  if (json.kind === 'list') return Array.from(json.elements(), (one) => objectOf(one, keys));
  if (json.kind !== 'object') return JSON.parse(json.raw);
  return Object.fromEntries(
    Array.from(json.members(), ([name, value]) => {
      const key = keys.get(name);
      if (key?.leaf === undefined) return [name, objectOf(value, key?.below ?? NO_KEYS)];
      return [name, leafOf(value, key.leaf)];
    }),
  );
}

function leafOf(json: Json, type: string): unknown {
  if (json.kind === 'list') return Array.from(json.elements(), (one) => leafOf(one, type));
  if (json.kind !== 'number') {
    return BUILT_IN.has(type) ? JSON.parse(json.raw) : exactly(json.value);
  }
  // An id is a text: graphql-js writes it as one, whatever the service did.
  if (type === 'ID') return json.raw;
  return BUILT_IN.has(type) ? Number(json.raw) : numberOf(json.raw);
}

const BUILT_IN: ReadonlySet<string> = new Set(['ID', 'Int', 'Float', 'String', 'Boolean']);

/** Replaces every `Json` in a value, which stands for a number. */
export function exactly(value: unknown): unknown {
  if (value instanceof Json) return numberOf(value.raw);
  if (Array.isArray(value)) return value.map(exactly);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, exactly(one)]));
}

/** Reads a literal of a custom scalar. */
export function exactLiteral(
  node: ValueNode,
  variables?: Readonly<Record<string, unknown>> | null,
): unknown {
  switch (node.kind) {
    case Kind.INT:
    case Kind.FLOAT:
      return numberOf(node.value);
    case Kind.LIST:
      return node.values.map((one) => exactLiteral(one, variables));
    case Kind.OBJECT:
      return Object.fromEntries(
        node.fields.map(({ name, value }) => [name.value, exactLiteral(value, variables)]),
      );
    default:
      return valueFromASTUntyped(node, variables);
  }
}

function numberOf(written: string): number | ExactNumber {
  const number = Number(written);
  return decimalOf(String(number)) === decimalOf(written) ? number : new ExactNumber(written);
}

/** The value of a number as a text, the same for `1.0`, `1` and `10e-1`. */
function decimalOf(written: string): string {
  const [, sign = '', whole = '', part = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(written) ?? [];
  const digits = `${whole}${part}`.replace(/^0+/, '');
  const short = digits.replace(/0+$/, '');
  if (short === '') return '0';
  return `${sign}${short}e${Number(exponent) - part.length + digits.length - short.length}`;
}
