import type { GraphQLError } from 'graphql';
import { codedError } from '../../errors.ts';
import { parseJson, type Json } from '../../json.ts';
import { BodyTooLarge } from '../../read-body.ts';
import type { Exchange, Params, Stage } from '../exchange/exchange.ts';

/**
 * Takes operations as JSON, or in the address of a GET. Never as a form: the page of any site can make a
 * browser send one here, mutations too, without the question that CORS asks before JSON.
 *
 * Never holds more than `maxBytes` of a body.
 */
export function readParams(maxBytes: number): Stage {
  return (exchange) => {
    if (exchange.method === 'POST') {
      checkBody(exchange, maxBytes);
      return exchange.readBody(maxBytes).then(
        (text) => {
          exchange.params = paramsIn(text);
          if (mayHoldOddNumber(text)) exchange.exactVariables = jsonIn(text)?.get('variables');
          return undefined;
        },
        (error: unknown) => {
          throw error instanceof BodyTooLarge ? tooLarge(maxBytes) : error;
        },
      );
    }
    if (exchange.method !== 'GET') throw otherMethod();
    checkAddress(exchange, maxBytes);
    exchange.params = paramsInAddress(exchange.query);
    const variables = new URLSearchParams(exchange.query).get('variables') ?? '';
    if (mayHoldOddNumber(variables)) exchange.exactVariables = jsonIn(variables);
    return undefined;
  };
}

/**
 * Whether a number may be in it that is not written as JavaScript would: with more digits than it can hold, an
 * exponent, or zeros at the end. So may a key that it would put in another place.
 */
function mayHoldOddNumber(text: string): boolean {
  return /\d{16}|\d\.?\d*[eE][+-]?\d|\.\d*0(?!\d)|-0|"\d+"\s*:/.test(text);
}

function jsonIn(text: string): Json | undefined {
  const json = parseJson(text);
  return typeof json === 'string' ? undefined : json;
}

/** @throws GraphQLError for what need not be read to be refused */
function checkBody(exchange: Exchange, maxBytes: number): void {
  const type = exchange.header('content-type') ?? '';
  if (type !== 'application/json' && !/^application\/json\s*([;,]|$)/i.test(type)) {
    throw refused(415, 'Send the operation as JSON, with "content-type: application/json".');
  }
  const encoding = exchange.header('content-encoding') ?? 'identity';
  if (encoding.toLowerCase() !== 'identity') {
    // RFC 9110, 12.5.3: in an answer it says which encodings of requests are taken.
    throw refused(415, 'Send the body as it is, without a content-encoding.', {
      'accept-encoding': 'identity',
    });
  }
  if (Number(exchange.header('content-length')) > maxBytes) throw tooLarge(maxBytes);
}

function paramsIn(text: string): Params {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    // Without the words of the parser, which have a piece of the body in them.
    throw refused(400, 'The body is no valid JSON.');
  }
  if (Array.isArray(json)) throw refused(400, 'Batching is not supported.');
  if (typeof json !== 'object' || json === null) {
    throw refused(400, 'The body must be a JSON object with a "query".');
  }
  return json as Params;
}

/** As little is read of an address as of a body. */
function checkAddress({ path, query }: Exchange, maxBytes: number): void {
  if (path.length + query.length > maxBytes) {
    throw refused(
      414,
      `An address may have ${maxBytes} characters here. Use POST, or ask for less.`,
    );
  }
}

function paramsInAddress(query: string): Params {
  const given = new URLSearchParams(query);
  const text = (name: string) => given.get(name) || undefined;
  const json = (name: string): unknown => {
    const value = text(name);
    return value === undefined ? undefined : JSON.parse(value);
  };
  try {
    return {
      operationName: text('operationName'),
      query: text('query'),
      variables: json('variables'),
      extensions: json('extensions'),
    };
  } catch {
    throw refused(400, 'The variables and the extensions in the address must be JSON.');
  }
}

function otherMethod(): GraphQLError {
  return refused(405, 'GraphQL only supports GET and POST requests.', { Allow: 'GET, POST' });
}

function tooLarge(maxBytes: number): GraphQLError {
  const message = `A request may have ${maxBytes} bytes here. Send less, with values in variables and not twice, or split it; the operator can raise MAX_BODY_BYTES.`;
  return refused(413, message, { connection: 'close' });
}

function refused(status: number, message: string, headers: Record<string, string> = {}) {
  return codedError('BAD_USER_INPUT', message, { extensions: { http: { status, headers } } });
}
