import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { Client } from 'undici';
import { BodyTooLarge, readBody } from '../../memory/byte-limit.ts';
import { LARGEST_TOKEN_SET_BYTES } from '../token-set.ts';

interface GetOptions {
  headers: Record<string, string>;
  /** URL of the proxy to go through, if there is one. */
  proxy: string | undefined;
  timeoutMs?: number | undefined;
  /** Default: 64 KiB, more than any JSON of the service about tokens. */
  maxBytes?: number;
}

/** The body is undefined when it is larger than `maxBytes`. */
export interface GetAnswer {
  readonly status: number;
  readonly body: string | undefined;
  /** Whether the body is HTML or XML, such as the error page of a proxy. */
  readonly isPage: boolean;
}

const ANSWER_TIMEOUT_MS = 30_000;

/** Sends one GET on a new connection. Does not follow redirects. */
export async function get(url: URL, options: GetOptions): Promise<GetAnswer> {
  const {
    headers,
    proxy,
    timeoutMs = ANSWER_TIMEOUT_MS,
    maxBytes = LARGEST_TOKEN_SET_BYTES,
  } = options;
  const { client, close } = clientOver(await openConnection(url, proxy), url);
  try {
    return await inTime(timeoutMs, 'no answer', async (signal) => {
      const path = url.pathname + url.search;
      const response = await client.request({ method: 'GET', path, headers, signal });
      const body = await bodyOf(response.body, maxBytes);
      const type = response.headers['content-type']?.toString() ?? '';
      const isPage = /\bhtml\b/i.test(type) || /^\uFEFF?\s*</.test(body ?? '');
      return { status: response.statusCode, body, isPage };
    });
  } finally {
    await close();
  }
}

async function bodyOf(body: AsyncIterable<Uint8Array>, each: number): Promise<string | undefined> {
  try {
    return await readBody(body, { each });
  } catch (error) {
    if (error instanceof BodyTooLarge) return undefined;
    throw error;
  }
}

const CONNECT_TIMEOUT_MS = 10_000;

/**
 * Opens a new connection to the host of the URL, TLS included, without sending a request. Through a proxy, it is a
 * tunnel, for plain http as well.
 *
 * @param proxy URL of an HTTP(S) proxy; its user and password never appear in an error
 */
export function openConnection(
  url: URL,
  proxy: string | undefined,
  timeoutMs = CONNECT_TIMEOUT_MS,
): Promise<Socket> {
  return inTime(timeoutMs, `no connection to ${url.host}`, async (signal) => {
    if (proxy === undefined) return dial(url, signal);
    const tunnel = await openTunnel(url, parseProxy(proxy), signal);
    return url.protocol === 'https:' ? dial(url, signal, tunnel) : tunnel;
  });
}

/** @param problem the beginning of the message after a time-out */
async function inTime<T>(
  timeoutMs: number,
  problem: string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = new AbortController();
  const timer = setTimeout(
    () => late.abort(new PlainError(`${problem} within ${timeoutMs / 1000} s`)),
    timeoutMs,
  );
  try {
    return await work(late.signal);
  } finally {
    clearTimeout(timer);
  }
}

function parseProxy(text: string): URL {
  // The error of `new URL` would contain the text, with the password.
  const url = URL.parse(text);
  if (url && url.hostname !== '' && ['http:', 'https:'].includes(url.protocol)) return url;
  throw new PlainError('the proxy of the system is not an http:// or https:// address');
}

async function openTunnel(url: URL, proxy: URL, signal: AbortSignal): Promise<Socket> {
  const socket = await dial(proxy, signal).catch((cause: unknown) => {
    throw new PlainError(`the proxy ${proxy.host} cannot be reached: ${reasonOf(cause)}`, {
      cause,
    });
  });
  const target = `${url.hostname}:${portOf(url)}`;
  try {
    const { client } = clientOver(socket, proxy);
    const headers = { host: target, ...authorization(proxy) };
    const { statusCode } = await client.connect({ path: target, headers, signal });
    if (statusCode === 200) return socket;
    throw new PlainError(`the proxy ${proxy.host} refuses to connect, with status ${statusCode}`);
  } catch (cause) {
    socket.destroy();
    if (cause instanceof PlainError) throw cause;
    const text = `the proxy ${proxy.host} does not connect: ${reasonOf(cause)}`;
    throw new PlainError(text, { cause });
  }
}

function authorization({ username, password }: URL): Record<string, string> {
  if (username === '' && password === '') return {};
  const credentials = `${decoded(username)}:${decoded(password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function dial(url: URL, signal: AbortSignal, tunnel?: Socket): Promise<Socket> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const isTls = url.protocol === 'https:';
  const to = { host, port: portOf(url) };
  const servername = isIP(host) === 0 ? { servername: host } : {};
  const socket = isTls
    ? connectTls({
        ...to,
        ...servername,
        ALPNProtocols: ['http/1.1'],
        ...(tunnel && { socket: tunnel }),
      })
    : connectTcp(to);
  const opened = Promise.withResolvers<Socket>();
  const abort = () => socket.destroy(signal.reason as Error);
  signal.addEventListener('abort', abort);
  // The listener stays: an error between connecting and sending must not end the process.
  socket.setNoDelay(true).setKeepAlive(true, 60_000).on('error', opened.reject);
  socket.once('close', () => {
    tunnel?.destroy();
    opened.reject(new PlainError(`the connection to ${url.host} was closed`));
  });
  socket.once(isTls ? 'secureConnect' : 'connect', () => opened.resolve(socket));
  return opened.promise.finally(() => signal.removeEventListener('abort', abort));
}

function portOf({ port, protocol }: URL): number {
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
}

/** An HTTP client that never opens another connection. */
interface OneConnection {
  readonly client: Client;
  close(): Promise<void>;
}

/** Makes a client over an open socket, without time-outs. */
export function clientOver(socket: Socket, { origin }: URL): OneConnection {
  let isTaken = false;
  const client = new Client(origin, {
    allowH2: false,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: (_options, callback) => {
      // Not synchronously: the client is not ready yet, and would wait for ever.
      setImmediate(() => {
        // A client whose connection ended before the request was written would connect again and again.
        if (isTaken || socket.destroyed)
          return callback(new Error('The connection is closed.'), null);
        isTaken = true;
        callback(null, socket);
      });
    },
  });
  return {
    client,
    close: async () => {
      // A client that never sent anything has not adopted the socket.
      socket.destroy();
      await client.destroy();
    },
  };
}

/** An error whose message explains it to the operator, without secrets. */
export class PlainError extends Error {
  override name = 'PlainError';
}

/** Explains an error to the operator. Messages of other errors are left out: they may contain addresses or headers. */
export function reasonOf(error: unknown): string {
  if (error instanceof PlainError) return error.message;
  const { code, name } = (error ?? {}) as { code?: unknown; name?: string };
  // The numeric code of a DOMException is meaningless.
  return typeof code === 'string' ? code : (name ?? 'unknown error');
}
