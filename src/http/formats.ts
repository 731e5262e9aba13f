import { JSON_TYPE, type Body, type Piece, type Reply } from './reply.ts';

/** How an answer may be sent to a caller. */
export interface Accepted {
  /** The content type of an answer in one piece; undefined if none of its types is accepted. */
  readonly json: JsonType | undefined;
  /** Whether an operation with `@stream` is answered in parts. */
  readonly parts: boolean;
}

const GRAPHQL_TYPE = 'application/graphql-response+json; charset=utf-8';
type JsonType = typeof JSON_TYPE | typeof GRAPHQL_TYPE;

const MULTIPART = 'multipart/mixed';
/** The proposal of 2022-08-24, which places each part by its path. */
const PARTS_FORMAT = 'deferSpec=20220824';

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
  const parts = ranges.some(
    (range) =>
      range.name === MULTIPART &&
      range.quality > 0 &&
      range.quality >= (best?.quality ?? 0) &&
      isKnownFormat(range),
  );
  return { json: best?.type, parts };
}

const ONLY_JSON: Accepted = { json: JSON_TYPE, parts: false };
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
    const place = ranges.findIndex((range) => range.name === name);
    if (place >= 0) return { quality: ranges[place]!.quality, place };
  }
  return { quality: 0, place: 0 };
}

/** Some clients, such as urql, send no parameter, and read streamed lists in this format. */
function isKnownFormat({ parameters }: MediaRange): boolean {
  const named = [...parameters].filter(([name]) => name.endsWith('spec'));
  return named.every(([name, value]) => `${name}=${value}` === PARTS_FORMAT.toLowerCase());
}

/** What a caller that accepts none of the formats is told. */
export const NOT_ACCEPTABLE =
  'The accept header allows none of the formats of this gateway. Send "accept: application/json", or, ' +
  `to receive a list with @stream in parts, "accept: ${MULTIPART};${PARTS_FORMAT}".`;

/** Makes the reply of an answer in parts (multipart/mixed: RFC 2046, 5.1.3). @param parts each the JSON of a payload */
export function multipartReply(parts: AsyncIterable<readonly Piece[]>): Reply {
  // A hyphen is its boundary.
  const type = `${MULTIPART}; boundary="-"; ${PARTS_FORMAT}`;
  return { status: 200, headers: { 'content-type': type }, body: delimited(parts) };
}

/** Each part with the delimiter after it, for which clients wait before they use the part. */
async function* delimited(
  parts: AsyncIterable<readonly Piece[]>,
): AsyncGenerator<Body, void, undefined> {
  let before = DELIMITER;
  for await (const json of parts) {
    const length = json.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
    const head = `\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${length}\r\n\r\n`;
    yield [before + head, ...json, DELIMITER];
    before = '';
  }
  // Turns the delimiter after the last part into the closing one.
  yield '--\r\n';
}

const DELIMITER = '\r\n---';
