import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { clientOver } from './client-over.ts';
import { PlainError, reasonOf } from './reason-of.ts';

const TIMEOUT_MS = 10_000;

/**
 * A fresh connection to where the address points, TLS included. Nothing of a request is sent on it. With a
 * proxy, it is a tunnel through that, for plain http as well.
 *
 * @param proxy URL of an HTTP(S) proxy; its user and password occur in no error
 */
export async function openConnection(
  url: URL,
  proxy: string | undefined,
  timeoutMs = TIMEOUT_MS,
): Promise<Socket> {
  const late = new AbortController();
  const timer = setTimeout(
    () => late.abort(new PlainError(`no connection to ${url.host} within ${timeoutMs / 1000} s`)),
    timeoutMs,
  );
  try {
    if (proxy === undefined) return await dial(url, late.signal);
    const tunnel = await openTunnel(url, parseProxy(proxy), late.signal);
    return url.protocol === 'https:' ? await dial(url, late.signal, tunnel) : tunnel;
  } finally {
    clearTimeout(timer);
  }
}

function parseProxy(text: string): URL {
  // The error of `new URL` would hold the text, with the password.
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
