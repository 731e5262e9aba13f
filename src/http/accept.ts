/** Which formats of answers a caller accepts. */
export interface Accepted {
  /** The content type of an answer in one piece; undefined if none of its types is accepted. */
  readonly json: JsonType | undefined;
  /** Whether parts are accepted; `unknown` if only other formats of parts are, undefined without any. */
  readonly parts: 'known' | 'unknown' | undefined;
  /** Whether an operation with `@stream` is answered in parts, although `json` may be accepted too. */
  readonly prefersParts: boolean;
}

export const JSON_TYPE = 'application/json; charset=utf-8';
const GRAPHQL_TYPE = 'application/graphql-response+json; charset=utf-8';
type JsonType = typeof JSON_TYPE | typeof GRAPHQL_TYPE;

/** The only type of answers in parts. */
export const MULTIPART = 'multipart/mixed';
/** Names the format of parts: the proposal of 2022-08-24, which places each part by its path. */
export const PARTS_FORMAT = 'deferSpec=20220824';

/**
 * Reads an `accept` header (RFC 9110, 12.5.1): the most specific range that matches a type decides about it. Of equal
 * quality values, the type that is named first is preferred, and parts are preferred to JSON. Only a caller that names
 * `multipart/mixed` gets parts: `*\/*` does not show that a client can join them, and every client reads JSON.
 */
export function accepted(header = ''): Accepted {
  if (header === '' || header === '*/*' || header === 'application/json') return ONLY_JSON;
  const ranges = mediaRanges(header);
  const [best] = JSON_TYPES.map(({ type, names }) => ({ type, ...matchOf(ranges, names) }))
    .filter(({ quality }) => quality > 0)
    .toSorted((a, b) => b.quality - a.quality || a.place - b.place);
  const multipart = ranges
    .filter(({ name, quality }) => name === MULTIPART && quality > 0)
    .toSorted((a, b) => b.quality - a.quality);
  const known = multipart.find(isKnownFormat);
  return {
    json: best?.type,
    parts: known ? 'known' : multipart.length > 0 ? 'unknown' : undefined,
    prefersParts: known !== undefined && known.quality >= (best?.quality ?? 0),
  };
}

const ONLY_JSON: Accepted = { json: JSON_TYPE, parts: undefined, prefersParts: false };
const ANY = ['application/*', '*/*'];
/** With the range names that match each type, the most specific first. */
const JSON_TYPES = [
  { type: JSON_TYPE, names: ['application/json', ...ANY] },
  { type: GRAPHQL_TYPE, names: ['application/graphql-response+json', ...ANY] },
] as const;

interface MediaRange {
  readonly name: string;
  readonly parameters: ReadonlyMap<string, string>;
  readonly quality: number;
}

/** In the order of the header. */
function mediaRanges(accept: string): readonly MediaRange[] {
  return accept
    .toLowerCase()
    .split(',')
    .map((range) => {
      const [name = '', ...texts] = range.split(';').map((text) => text.trim());
      const parameters = new Map(texts.map(nameAndValue));
      return { name, parameters, quality: Number(parameters.get('q') ?? 1) };
    })
    .filter(({ name, quality }) => name !== '' && !Number.isNaN(quality));
}

function nameAndValue(parameter: string): [string, string] {
  const [name = '', value = ''] = parameter.split('=').map((text) => text.trim());
  return [name, value.replaceAll('"', '')];
}

/** Returns the quality value of a type, and the position in the header of the range that it comes from. */
function matchOf(ranges: readonly MediaRange[], names: readonly string[]) {
  for (const name of names) {
    const place = ranges.findIndex((range) => range.name === name && isUtf8(range));
    if (place >= 0) return { quality: ranges[place]!.quality, place };
  }
  return { quality: 0, place: 0 };
}

/** `utf8` is not a registered name (RFC 9110, 8.3.2), but many clients send it. */
function isUtf8({ parameters }: MediaRange): boolean {
  return ['utf-8', 'utf8'].includes(parameters.get('charset') ?? 'utf-8');
}

/** Some clients, such as urql, send no parameter, and read streamed lists in this format. */
function isKnownFormat({ parameters }: MediaRange): boolean {
  const named = [...parameters].filter(([name]) => name.endsWith('spec'));
  return named.every(([name, value]) => `${name}=${value}` === PARTS_FORMAT.toLowerCase());
}
