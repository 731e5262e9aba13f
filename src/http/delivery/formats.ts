import type { IncrementalFormat } from '../../answers/write-answer.ts';
import { JSON_TYPE, type Body, type Piece, type Reply } from '../exchange.ts';

/** What a caller accepts of the formats that the gateway writes. */
export interface Accepted {
  /** The content type of an answer in one piece; undefined if none of its types is accepted. */
  readonly json: JsonType | undefined;
  /** The format of an answer in parts; `unknown` if only others are accepted, undefined if none is. */
  readonly parts: IncrementalFormat | 'unknown' | undefined;
  /** Whether an incremental operation is answered in parts, although `json` may be accepted too. */
  readonly prefersParts: boolean;
}

const GRAPHQL_TYPE = 'application/graphql-response+json; charset=utf-8';
type JsonType = typeof JSON_TYPE | typeof GRAPHQL_TYPE;

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
    .toSorted((one, other) => other.quality - one.quality || one.place - other.place);
  const multipart = ranges
    .filter(({ name, quality }) => name === MULTIPART && quality > 0)
    .toSorted((one, other) => other.quality - one.quality);
  const known = multipart.find(formatOf);
  return {
    json: best?.type,
    parts: known ? formatOf(known) : multipart.length > 0 ? 'unknown' : undefined,
    prefersParts: known !== undefined && known.quality >= (best?.quality ?? 0),
  };
}

const ONLY_JSON: Accepted = { json: JSON_TYPE, parts: undefined, prefersParts: false };
const ANY = ['application/*', '*/*'];
/** With the names of the ranges that match each type, the most specific first. */
const JSON_TYPES = [
  { type: JSON_TYPE, names: ['application/json', ...ANY] },
  { type: GRAPHQL_TYPE, names: ['application/graphql-response+json', ...ANY] },
] as const;
const MULTIPART = 'multipart/mixed';

/** The quality value of a type, and the place in the header of the range that it comes from. */
function matchOf(ranges: readonly MediaRange[], names: readonly string[]) {
  for (const name of names) {
    const place = ranges.findIndex((range) => range.name === name && isUtf8(range));
    if (place >= 0) return { quality: ranges[place]!.quality, place };
  }
  return { quality: 0, place: 0 };
}

/** `utf8` is no registered name (RFC 9110, 8.3.2), but many clients send it. */
function isUtf8({ parameters }: MediaRange): boolean {
  return ['utf-8', 'utf8'].includes(parameters.get('charset') ?? 'utf-8');
}

/** The parameter of `multipart/mixed` that names each format. */
const PARAMETERS: Readonly<Record<IncrementalFormat, string>> = {
  '20220824': 'deferSpec=20220824',
  'v0.2': 'incrementalSpec=v0.2',
};

/** How callers ask for each format. */
export const FORMATS = Object.values(PARAMETERS).map((parameter) => `${MULTIPART};${parameter}`);

/** Without a parameter, the older format: clients that name none, such as urql, read streamed lists only in that one. */
function formatOf({ parameters }: MediaRange): IncrementalFormat | undefined {
  const given = [...parameters].filter(([name]) => name.endsWith('spec'));
  if (given.length === 0) return '20220824';
  const text = given.map(([name, value]) => `${name}=${value}`).join(';');
  return FORMAT_NAMES.find((format) => PARAMETERS[format].toLowerCase() === text);
}

const FORMAT_NAMES = Object.keys(PARAMETERS) as IncrementalFormat[];

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

/** Makes the reply of an answer in parts (multipart/mixed: RFC 2046, 5.1.3). @param parts made by `jsonPart` */
export function multipartReply(
  format: IncrementalFormat,
  parts: AsyncIterable<Part | undefined>,
): Reply {
  return { status: 200, headers: multipartHeaders(format), body: delimited(parts) };
}

/** Makes the reply of an answer that is a single part. */
export function onePartReply(format: Accepted['parts'], text: readonly (string | Buffer)[]): Reply {
  const body = [DELIMITER, ...jsonPart(text), LAST];
  return { status: 200, headers: multipartHeaders(format), body };
}

function multipartHeaders(format: Accepted['parts']) {
  const isKnown = format !== undefined && format !== 'unknown';
  // A hyphen is its boundary.
  const type = `${MULTIPART}; boundary="-"${isKnown ? `; ${PARAMETERS[format]}` : ''}`;
  return { 'content-type': type };
}

type Part = readonly Piece[];

async function* delimited(
  parts: AsyncIterable<Part | undefined>,
): AsyncGenerator<Body, void, undefined> {
  let before = [DELIMITER];
  for await (const part of parts) {
    if (part) yield [...before, ...part];
    before = [];
  }
  yield LAST;
}

const DELIMITER = '\r\n---';
/** Makes the last delimiter out of the one behind the last part. */
const LAST = '--\r\n';

/** One part of an answer, with the delimiter behind it: clients wait for that one before they use the part. */
export function jsonPart(text: readonly (string | Buffer)[]): Part {
  const length = text.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
  return [
    `\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${length}\r\n\r\n`,
    ...text,
    DELIMITER,
  ];
}
