import type { ServerResponse } from 'node:http';

export interface Answer {
  status: number;
  /** Sent as JSON; without it the answer has no body. */
  body?: unknown;
  headers?: Record<string, string>;
}

export function send(response: ServerResponse, { status, body, headers = {} }: Answer): void {
  if (body === undefined) {
    response.writeHead(status, headers).end();
    return;
  }
  const json = Buffer.from(JSON.stringify(body));
  response
    .writeHead(status, {
      ...headers,
      'content-type': 'application/json; charset=utf-8',
      'content-length': json.length,
    })
    .end(json);
}

/** Any failure whose body the interface does not show: GraphQL's shape, on every path. */
export function problem(status: number, message: string): Answer {
  return { status, body: { errors: [{ message }] } };
}
