import { writePayload, type Payload } from '../../answers/write-answer.ts';
import { JSON_TYPE, type Body, type Reply } from '../exchange.ts';

/** How an incremental operation is answered: in parts, in one whole answer, or not at all. */
export type Delivery = 'parts' | 'whole' | 'none';

/**
 * The delivery that a caller accepts. Only a caller that names `multipart/mixed` gets parts: `*\/*` does not show that
 * a client can join them, and every client reads JSON.
 */
export function deliveryFor(accept = ''): Delivery {
  const types = mediaTypes(accept);
  const multipart = types.filter(({ name }) => name === 'multipart/mixed');
  if (multipart.some(({ parameters }) => isSupported(parameters))) return 'parts';
  if (multipart.length > 0) return 'none';
  return types.length > 0 && types.every(({ name }) => name === 'text/event-stream')
    ? 'none'
    : 'whole';
}

/** The date of the incremental delivery proposal whose format is written, as clients name it. */
export const SPEC = '20220824';

function isSupported(parameters: ReadonlyMap<string, string>): boolean {
  return [...parameters].every(
    ([name, value]) => !name.endsWith('spec') || (name === 'deferspec' && value === SPEC),
  );
}

interface MediaType {
  readonly name: string;
  readonly parameters: ReadonlyMap<string, string>;
}

function mediaTypes(accept: string): readonly MediaType[] {
  return accept
    .toLowerCase()
    .split(',')
    .map((range) => {
      const [name = '', ...parameters] = range.split(';').map((text) => text.trim());
      return { name, parameters: new Map(parameters.map(nameAndValue)) };
    })
    .filter(({ name, parameters }) => name !== '' && Number(parameters.get('q') ?? 1) !== 0);
}

function nameAndValue(parameter: string): [string, string] {
  const [name = '', value = ''] = parameter.split('=').map((text) => text.trim());
  return [name, value.replaceAll('"', '')];
}

const GRAPHQL_TYPE = 'application/graphql-response+json; charset=utf-8';

/**
 * The content type of a whole answer, chosen as Yoga chooses it for refusals: the first accepted type that the gateway
 * writes, whatever its `q`. Undefined for a caller that accepts neither of the two.
 */
export function jsonTypeFor(accept = '*/*'): typeof JSON_TYPE | typeof GRAPHQL_TYPE | undefined {
  if (accept === '*/*' || accept === 'application/json') return JSON_TYPE;
  for (const range of accept.replace(/\s/g, '').toLowerCase().split(',')) {
    const [name, ...parameters] = range.split(';');
    const charset = parameters.find((parameter) => parameter.includes('charset='));
    if (charset !== undefined && charset !== 'charset=utf-8') continue;
    if (name === 'application/graphql-response+json') return GRAPHQL_TYPE;
    if (name === 'application/json' || name === 'application/*' || name === '*/*') return JSON_TYPE;
  }
  return undefined;
}

/**
 * An answer in parts, as multipart/mixed (RFC 2046, 5.1.3) with a hyphen as its boundary.
 *
 * @param first the first payload, which was already taken from the generator
 */
export function multipartReply(
  first: Payload,
  further: AsyncGenerator<Payload, void, undefined>,
  mask: (error: unknown) => Error,
): Reply {
  return {
    status: 200,
    headers: { 'content-type': 'multipart/mixed; boundary="-"' },
    body: parts(first, further, mask),
  };
}

async function* parts(
  first: Payload,
  further: AsyncGenerator<Payload, void, undefined>,
  mask: (error: unknown) => Error,
): AsyncGenerator<Body, void, undefined> {
  try {
    yield part(writePayload(first, mask, !first.hasNext), '\r\n---');
    if (first.hasNext) for await (const payload of further) yield part(writePayload(payload, mask));
    yield '--\r\n';
  } finally {
    await further.return();
  }
}

function part(text: readonly (string | Buffer)[], before = ''): Body {
  const length = text.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
  return [
    `${before}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${length}\r\n\r\n`,
    ...text,
    '\r\n---',
  ];
}
