import type { ServerResponse } from 'node:http';

export interface Answer {
  status: number;
  /** Sent as JSON. Without it and without a text, the answer has no body. */
  body?: unknown;
  /** Sent as it is, instead of `body`. */
  text?: string | Uint8Array;
  headers?: Record<string, string>;
  /** Whether the connection is cut in the middle of the body. */
  halved?: boolean;
  /** Called once the whole answer has been handed to the socket. */
  whenSent?: () => void;
}

export function send(response: ServerResponse, answer: Answer): void {
  const { status, body, headers = {}, halved = false, whenSent } = answer;
  const text = answer.text ?? (body === undefined ? undefined : JSON.stringify(body));
  const bytes = Buffer.from(text ?? '');
  if (text !== undefined) {
    response.setHeader('content-type', 'application/json; charset=utf-8');
    response.setHeader('content-length', bytes.length);
  }
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  response.writeHead(status);
  if (halved) {
    const half = bytes.subarray(0, Math.floor(bytes.length / 2));
    response.write(half, () => response.destroy());
    return;
  }
  if (bytes.length > 0) response.write(bytes, (error) => !error && whenSent?.());
  response.end();
}

/** A failure whose body the interface does not show. It has the shape of a GraphQL error, on every path. */
export function problem(status: number, message: string): Answer {
  return { status, body: { errors: [{ message }] } };
}
