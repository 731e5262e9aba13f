import type { ServerResponse } from 'node:http';
import { buildSchema, graphql } from 'graphql';
import type { Reply } from './service.ts';

/** An answer with lists, before a test changes it. */
interface GraphQLAnswer {
  data: Record<string, AnsweredPage>;
  errors?: unknown;
}

export interface AnsweredPage {
  items: Record<string, unknown>[];
  pageInfo: Record<string, unknown>;
}

/** Answers as the sandbox does. */
export const honest: Reply = (response, received, service) =>
  service.answerHonestly(response, received);

/** Answers as the sandbox does, with a changed body. */
export function altered(change: (answer: GraphQLAnswer) => void): Reply {
  return async (response, received, service) => {
    const { status, body } = await service.honestAnswer(received);
    const content = JSON.parse(JSON.stringify(body)) as GraphQLAnswer;
    change(content);
    respondWith(response, status, JSON.stringify(content));
  };
}

/** A reply that depends on nothing. */
type FixedReply = (response: ServerResponse) => void;

export function json(
  body: unknown,
  status = 200,
  headers: Record<string, string> = {},
): FixedReply {
  return (response) => respondWith(response, status, JSON.stringify(body), headers);
}

export function text(body: string, status = 200, headers: Record<string, string> = {}): Reply {
  return (response) =>
    respondWith(response, status, body, { 'content-type': 'text/html', ...headers });
}

/** The error body of a refused access token (interface, 2.2). */
export function refusal(detail: string, status = 401): Reply {
  return json({ type: 'invalid_token', detail }, status);
}

/** Answers only after the gate is open. */
export function after(gate: Promise<unknown>, reply: Reply): Reply {
  return async (...exchange) => {
    await gate;
    await reply(...exchange);
  };
}

/**
 * Answers introspection as a service with this schema does.
 *
 * @param refuses returns the message with which a query is refused
 */
export function introspected(
  sdl: string,
  refuses: (query: string) => string | undefined = () => undefined,
): Reply {
  const schema = buildSchema(sdl);
  return async (...exchange) => {
    const { query } = JSON.parse(exchange[1].body) as { query: string };
    const message = refuses(query);
    const refused = { errors: [{ message }] };
    json(message === undefined ? await graphql({ schema, source: query }) : refused)(exchange[0]);
  };
}

/** Does the same as a service of 2016, whose introspection refuses everything added since. */
export function introspectedAsIn2016(sdl: string): Reply {
  return introspected(sdl, (query) => (ADDED_SINCE.test(query) ? 'Cannot query that.' : undefined));
}

const ADDED_SINCE =
  /specifiedByURL|isOneOf|isRepeatable|(args|inputFields)\(includeDeprecated|__schema \{\s*description/;

/** Does the same as current graphql-java services, which allow each of these fields once in a document. */
export function introspectedInGoodFaith(sdl: string): Reply {
  const limited = ['__schema', '__type', 'fields', 'inputFields', 'interfaces', 'possibleTypes'];
  return introspected(sdl, (query) => {
    const often = limited.find((field) => query.split(new RegExp(`\\b${field}\\b`)).length > 2);
    return often && `This request is not asking for introspection in good faith: ${often}`;
  });
}

function respondWith(
  response: ServerResponse,
  status: number,
  body: string,
  headers: Record<string, string> = {},
): void {
  if (response.destroyed) return;
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
}

/** The connection breaks before a byte of the answer. */
export const cut: FixedReply = (response) => void response.destroy();

/** The connection breaks when some of the answer has arrived. */
export const cutInBody: Reply = (response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
  response.write('{"data":{"persons":', () => response.destroy());
};

export const silence: Reply = () => {};

/** Headers and the beginning of a body, and nothing more. */
export const unfinished: Reply = (response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.write('{"data":');
};

/** An endless body, one byte at a time. */
export const trickle: Reply = (response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  const drops = setInterval(() => response.write(' '), 5);
  response.once('close', () => clearInterval(drops));
};

/** Endless interim answers, and no final one. */
export const hints: Reply = (response) => {
  const more = setInterval(() => response.writeEarlyHints({ link: '</x>; rel=preload' }), 5);
  response.once('close', () => clearInterval(more));
};

/** An endless body, as fast as it is read. */
export const flood: FixedReply = (response) => {
  const megabyte = Buffer.alloc(1024 * 1024, ' ');
  const pour = () => {
    while (!response.destroyed && response.write(megabyte));
  };
  response.writeHead(200, { 'content-type': 'application/json' }).on('drain', pour);
  pour();
};
