/** As it is in Node 24, which the types of TypeScript do not have yet (ECMAScript proposal "JSON.parse source text access"). */
interface ExactJson {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): object;
  isRawJSON(value: unknown): boolean;
}

const exactJson = JSON as unknown as ExactJson;

/** A number of 16 digits or more, which a double may not hold. Also found in strings, where it only costs time. */
const LONG_NUMBER = /[:[,]\s*-?\d{16}/;

/**
 * Parses JSON. Integers that a double cannot hold are kept as they were written: `JSON.stringify` writes the same digits
 * again. They are objects without a prototype, with the member `rawJSON`.
 *
 * @param keepDigits makes something else of the digits of such an integer
 * @throws SyntaxError
 */
export function parseExactly(
  text: string,
  keepDigits: (digits: string) => unknown = exactJson.rawJSON,
): unknown {
  if (!LONG_NUMBER.test(text)) return JSON.parse(text);
  return exactJson.parse(text, (_, value, { source }) => {
    const isUnsafe = typeof value === 'number' && !Number.isSafeInteger(value);
    return isUnsafe && source !== undefined && /^-?\d+$/.test(source) ? keepDigits(source) : value;
  });
}

/** Whether a value is an integer that `parseExactly` kept as it was written. */
export function isLongInteger(value: unknown): value is { readonly rawJSON: string } {
  return exactJson.isRawJSON(value);
}

export type JsonObject = Record<string, unknown>;

export function isJsonObject(value: unknown): value is JsonObject {
  const isContainer = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isContainer && !isLongInteger(value);
}
