import { setImmediate as nextTurn } from 'node:timers/promises';
import type { GraphQLError } from 'graphql';
import { codedError } from '../../errors.ts';
import { losesWriting, membersIn } from '../../json.ts';
import { BodiesTooLarge, BodyTooLarge } from '../../memory/read-body.ts';
import type { RequestMemory } from '../../memory/byte-limit.ts';
import type { Exchange, Params, Stage } from '../exchange.ts';
import { noMemory } from '../hold-requests.ts';

/**
 * Reads operations from a JSON body, or from the address of a GET. Forms are not accepted: a page of any site can make a
 * browser send one, even with a mutation, without the preflight that CORS requires for JSON.
 *
 * Never holds more than `maxBytes` of a body.
 */
export function readParams(maxBytes: number, memory: RequestMemory): Stage {
  const limits = { each: maxBytes, all: memory };
  let turn: Promise<void> = Promise.resolve();

  /** Large bodies are read in a turn of the event loop for each: many of them arrive in one. */
  const readInTurn = async (exchange: Exchange, text: string) => {
    if (!exchange.hold(text.length, memory)) return noMemory(exchange, memory);
    await (turn = turn.then(() => nextTurn()));
    exchange.letGo(text.length);
    return readBody(exchange, text);
  };

  return (exchange) => {
    if (exchange.method === 'POST') {
      checkBody(exchange, maxBytes);
      return exchange.readBody(limits).then(
        (text) => (text.length > LARGE ? readInTurn(exchange, text) : readBody(exchange, text)),
        (error: unknown) => {
          if (error instanceof BodyTooLarge) throw tooLarge(maxBytes);
          if (error instanceof BodiesTooLarge) return noMemory(exchange, memory);
          throw error;
        },
      );
    }
    if (exchange.method !== 'GET') throw otherMethod();
    checkAddress(exchange, maxBytes);
    exchange.params = paramsInAddress(exchange.query);
    const variables = new URLSearchParams(exchange.query).get('variables') ?? '';
    if (losesWriting(variables)) exchange.writtenVariables = variables;
    return undefined;
  };
}

function readBody(exchange: Exchange, text: string): undefined {
  exchange.params = paramsIn(text);
  if (losesWriting(text)) exchange.writtenVariables = variablesIn(text);
}

/** Characters. Ten times as many take about 10 ms from here to the service. */
const LARGE = 100_000;

function variablesIn(body: string): string | undefined {
  return membersIn(body, VARIABLES).get('variables');
}

const VARIABLES: ReadonlySet<string> = new Set(['variables']);

/** @throws GraphQLError if the headers alone are a reason to refuse the request */
function checkBody(exchange: Exchange, maxBytes: number): void {
  const type = exchange.header('content-type') ?? '';
  if (type !== 'application/json' && !/^application\/json\s*([;,]|$)/i.test(type)) {
    throw refused(
      415,
      'The content-type of this request is not supported. Send the operation as JSON, with "content-type: application/json".',
    );
  }
  const encoding = exchange.header('content-encoding') ?? 'identity';
  if (encoding.toLowerCase() !== 'identity') {
    // In an answer, this header lists the accepted encodings of requests (RFC 9110, 12.5.3).
    const accepted = { 'accept-encoding': 'identity' };
    throw refused(
      415,
      'The content-encoding of this request is not supported. Send the body without one.',
      accepted,
    );
  }
  if (Number(exchange.header('content-length')) > maxBytes) throw tooLarge(maxBytes);
}

function paramsIn(text: string): Params {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    // Not the message of the parser, which contains a piece of the body.
    throw refused(400, 'The body is not valid JSON. Send a JSON object with a "query".');
  }
  if (Array.isArray(json)) {
    throw refused(
      400,
      'Batching is off. Send each operation in its own request: in Apollo Client, with HttpLink instead of BatchHttpLink.',
    );
  }
  if (typeof json !== 'object' || json === null) {
    throw refused(400, 'The body is not a JSON object. Send one with a "query".');
  }
  return json as Params;
}

/** The limit of a body applies to an address too. */
function checkAddress({ path, query }: Exchange, maxBytes: number): void {
  if (path.length + query.length > maxBytes) {
    throw refused(
      414,
      `The address is longer than ${maxBytes} characters. Use POST, or request less.`,
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
    throw refused(
      400,
      'The variables or the extensions in the address are not valid JSON. Correct them, or use POST.',
    );
  }
}

function otherMethod(): GraphQLError {
  return refused(
    405,
    'This method is not supported. Send the operation with POST, or a query with GET.',
    { Allow: 'GET, POST' },
  );
}

function tooLarge(maxBytes: number): GraphQLError {
  const message = `The request is larger than ${maxBytes} bytes. Send each value only once, in variables, or split the request; the operator of this gateway can raise MAX_BODY_BYTES.`;
  return refused(413, message, { connection: 'close' });
}

function refused(status: number, message: string, headers: Record<string, string> = {}) {
  return codedError('BAD_USER_INPUT', message, { extensions: { http: { status, headers } } });
}
