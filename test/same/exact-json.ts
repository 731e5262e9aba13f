/** JSON that is written as it stands: digits beyond a double, keys in an order that no object can have. */
export class Verbatim {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/**
 * Normalizes what has no meaning: white space between tokens and the escapes of strings. Digits, the order of keys and
 * repeated keys stay as they are.
 *
 * @throws SyntaxError for a text that is not JSON
 */
export function canonical(text: string): string {
  JSON.parse(text);
  return tokensOf(text).join('');
}

/** Returns the members of an object in their order, each as canonical text. */
export function membersOf(text: string): [name: string, value: string][] {
  return partsOf(text, '{').map(([name = '', , ...value]) => [JSON.parse(name), value.join('')]);
}

/** Returns the elements of a list, each as canonical text. */
export function elementsOf(text: string): string[] {
  return partsOf(text, '[').map((tokens) => tokens.join(''));
}

/** Like `JSON.stringify`, but writes a `Verbatim` as its text. */
export function printExactly(value: unknown): string {
  if (value instanceof Verbatim) return value.text;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (hasOwnJson(value)) return printExactly(value.toJSON());
  if (Array.isArray(value)) return `[${value.map(printExactly).join(',')}]`;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  const printed = members.map(
    ([name, member]) => `${JSON.stringify(name)}:${printExactly(member)}`,
  );
  return `{${printed.join(',')}}`;
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

function tokensOf(text: string): string[] {
  return (text.match(TOKEN) ?? []).map((token) =>
    token.startsWith('"') ? JSON.stringify(JSON.parse(token)) : token,
  );
}

/** The tokens of each member or element of an object or a list. */
function partsOf(text: string, opening: '{' | '['): string[][] {
  const [first, ...tokens] = tokensOf(text);
  if (first !== opening) throw new TypeError(`This does not begin with ${opening}: ${text}`);
  const parts: string[][] = [];
  let part: string[] = [];
  let depth = 0;
  for (const token of tokens.slice(0, -1)) {
    if (token === ',' && depth === 0) {
      parts.push(part);
      part = [];
      continue;
    }
    if (token === '{' || token === '[') depth += 1;
    if (token === '}' || token === ']') depth -= 1;
    part.push(token);
  }
  return part.length > 0 ? [...parts, part] : parts;
}

function hasOwnJson(value: object): value is { toJSON(): unknown } {
  return 'toJSON' in value && typeof value.toJSON === 'function';
}
