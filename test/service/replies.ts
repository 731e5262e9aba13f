import type { ServerResponse } from 'node:http';
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

export function text(body: string, status = 200, headers: Record<string, string> = {}): FixedReply {
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

/** An endless body, as fast as it is read. */
export const flood: FixedReply = (response) => {
  const megabyte = Buffer.alloc(1024 * 1024, ' ');
  const pour = () => {
    while (!response.destroyed && response.write(megabyte));
  };
  response.writeHead(200, { 'content-type': 'application/json' }).on('drain', pour);
  pour();
};
