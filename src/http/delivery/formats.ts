import type { IncrementalFormat } from '../../answers/write-answer.ts';
import { JSON_TYPE, type Body, type Piece, type Reply } from '../exchange.ts';

/** How an incremental operation is answered: in parts of a format, in one whole answer, or not at all. */
export type Delivery = IncrementalFormat | 'whole' | 'none';

/**
 * The delivery that a caller prefers, by the quality values of its `accept` header; of equal ones, parts. Only a caller
 * that names `multipart/mixed` gets parts: `*\/*` does not show that a client can join them, and every client reads
 * JSON.
 */
export function deliveryFor(accept = ''): Delivery {
  const ranges = mediaRanges(accept);
  const json = ranges.find((range) => jsonTypeIn(range))?.quality ?? 0;
  const multipart = ranges.filter(({ name, quality }) => name === MULTIPART && quality >= json);
  if (multipart.length > 0) return multipart.map(formatOf).find(Boolean) ?? 'none';
  const isOnlyEvents = ranges.length > 0 && ranges.every(({ name }) => name === EVENTS);
  return isOnlyEvents ? 'none' : 'whole';
}

const MULTIPART = 'multipart/mixed';
const EVENTS = 'text/event-stream';

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

/** The accepted media ranges, the most preferred first. */
function mediaRanges(accept: string): readonly MediaRange[] {
  return accept
    .toLowerCase()
    .split(',')
    .map((range) => {
      const [name = '', ...texts] = range.split(';').map((text) => text.trim());
      const parameters = new Map(texts.map(nameAndValue));
      return { name, parameters, quality: Number(parameters.get('q') ?? 1) };
    })
    .filter(({ name, quality }) => name !== '' && quality > 0)
    .toSorted((one, other) => other.quality - one.quality);
}

function nameAndValue(parameter: string): [string, string] {
  const [name = '', value = ''] = parameter.split('=').map((text) => text.trim());
  return [name, value.replaceAll('"', '')];
}

const GRAPHQL_TYPE = 'application/graphql-response+json; charset=utf-8';
type JsonType = typeof JSON_TYPE | typeof GRAPHQL_TYPE;

/**
 * The content type of a whole answer: of the accepted types that the gateway writes, the most preferred. Undefined for a
 * caller that accepts neither of the two.
 */
export function jsonTypeFor(accept = '*/*'): JsonType | undefined {
  if (accept === '*/*' || accept === 'application/json') return JSON_TYPE;
  for (const range of mediaRanges(accept)) {
    const type = jsonTypeIn(range);
    if (type) return type;
  }
  return undefined;
}

function jsonTypeIn({ name, parameters }: MediaRange): JsonType | undefined {
  if ((parameters.get('charset') ?? 'utf-8') !== 'utf-8') return undefined;
  if (name === 'application/graphql-response+json') return GRAPHQL_TYPE;
  const isJson = name === 'application/json' || name === 'application/*' || name === '*/*';
  return isJson ? JSON_TYPE : undefined;
}

/**
 * An answer in parts, as multipart/mixed (RFC 2046, 5.1.3) with a hyphen as its boundary.
 *
 * @param parts made by `jsonPart`
 */
export function multipartReply(
  delivery: Delivery,
  parts: Iterable<Part> | AsyncIterable<Part | undefined>,
): Reply {
  const parameter = delivery in PARAMETERS ? `; ${PARAMETERS[delivery as IncrementalFormat]}` : '';
  return {
    status: 200,
    headers: { 'content-type': `${MULTIPART}; boundary="-"${parameter}` },
    body: delimited(parts),
  };
}

type Part = readonly Piece[];

async function* delimited(
  parts: Parameters<typeof multipartReply>[1],
): AsyncGenerator<Body, void, undefined> {
  let before = [DELIMITER];
  for await (const part of parts) {
    if (part) yield [...before, ...part];
    before = [];
  }
  yield '--\r\n';
}

const DELIMITER = '\r\n---';

/** One part of an answer, with the delimiter behind it: clients wait for that one before they use the part. */
export function jsonPart(text: readonly (string | Buffer)[]): Part {
  const length = text.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
  return [
    `\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${length}\r\n\r\n`,
    ...text,
    DELIMITER,
  ];
}
