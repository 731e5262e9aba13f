import { createHash } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import process from 'node:process';
import { messageReader } from '../http-messages.ts';

export interface Target {
  /** Of /graphql. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
}

export type LoadCommand =
  /**
   * Sends requests as fast as they are answered. No two in flight have the same body, as long as there are enough
   * bodies.
   */
  | (Bodies & { readonly do: 'press' })
  /** Sends all of them at once, each from a client of its own. */
  | (AtOnce & { readonly do: 'read' })
  /** Does the same, and reads nothing of the answers until `drop`. */
  | (AtOnce & { readonly do: 'stall' })
  | { readonly do: 'drop' };

interface Bodies extends Target {
  readonly bodies: readonly string[];
  readonly connections: number;
  /** Milliseconds. */
  readonly ms: number;
}

interface AtOnce extends Target {
  readonly bodies: readonly string[];
}

export interface Pressed {
  readonly done: number;
  readonly seconds: number;
}

export interface Answered {
  readonly status: number;
  readonly bytes: number;
  /** Of the body. */
  readonly digest: string;
  readonly start: string;
  /** From the request to the last byte. */
  readonly ms: number;
}

const stalled = new Set<Socket>();

process.on('disconnect', () => process.exit());
process.on('message', (command: LoadCommand) => {
  void answer(command).then(
    (result) => process.send!({ result }),
    (error: Error) => process.send!({ error: error.message }),
  );
});

async function answer(command: LoadCommand): Promise<unknown> {
  switch (command.do) {
    case 'press':
      return await press(command);
    case 'read':
      return await Promise.all(command.bodies.map((body) => read(command, body)));
    case 'stall':
      await Promise.all(command.bodies.map((body) => stall(command, body)));
      return null;
    case 'drop':
      for (const socket of stalled) socket.destroy();
      stalled.clear();
      return null;
  }
}

async function press(load: Bodies): Promise<Pressed> {
  const requests = load.bodies.map((body) => requestFor(load, body));
  const { promise: failed, reject } = Promise.withResolvers<never>();
  const { promise: over, resolve: finish } = Promise.withResolvers<void>();
  let sent = 0;
  let done = 0;
  let ended = false;
  const sockets = await Promise.all(
    Array.from({ length: load.connections }, () => open(load.endpoint)),
  );
  const start = performance.now();
  for (const socket of sockets) {
    const send = () => socket.write(requests[sent++ % requests.length]!);
    socket.on(
      'data',
      messageReader({
        head: (text) => {
          if (!text.startsWith('HTTP/1.1 200')) reject(new Error(`It answered: ${text}`));
        },
        end: () => {
          done += 1;
          if (!ended) send();
          else if (done === sent) finish();
        },
      }),
    );
    socket.on('error', reject).on('close', () => reject(new Error('A connection was closed.')));
    send();
  }
  const timer = setTimeout(() => (ended = true), load.ms);
  try {
    await Promise.race([over, failed]);
  } finally {
    clearTimeout(timer);
    for (const socket of sockets) socket.removeAllListeners('close').destroy();
  }
  return { done, seconds: (performance.now() - start) / 1_000 };
}

async function read({ endpoint, headers }: Target, body: string): Promise<Answered> {
  const socket = await open(endpoint);
  const { promise, resolve, reject } = Promise.withResolvers<Answered>();
  const begin = performance.now();
  const digest = createHash('sha256');
  let status = 0;
  let bytes = 0;
  let start = '';
  socket.on(
    'data',
    messageReader({
      head: (text) => (status = Number(text.split(' ')[1])),
      body: (part) => {
        bytes += part.length;
        digest.update(part);
        if (start.length < 500) start += part.toString('latin1', 0, 500);
      },
      end: () => {
        const ms = performance.now() - begin;
        resolve({ status, bytes, digest: digest.digest('hex'), start, ms });
      },
    }),
  );
  socket.on('error', reject).on('close', () => reject(new Error('The connection was closed.')));
  socket.write(requestFor({ endpoint, headers }, body));
  try {
    return await promise;
  } catch (error) {
    // A request without an answer is reported like the others: their number is part of the result.
    const message = (error as Error).message;
    return { status: 0, bytes, digest: '', start: message, ms: performance.now() - begin };
  } finally {
    socket.destroy();
  }
}

async function stall({ endpoint, headers }: Target, body: string): Promise<void> {
  const socket = await open(endpoint);
  stalled.add(socket);
  socket.on('error', () => socket.destroy()).pause();
  socket.write(requestFor({ endpoint, headers }, body));
}

async function open(endpoint: string): Promise<Socket> {
  const { hostname, port } = new URL(endpoint);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = connect({ host: hostname, port: Number(port), noDelay: true }, resolve);
  socket.once('error', reject);
  await promise;
  return socket.off('error', reject);
}

function requestFor({ endpoint, headers }: Target, body: string): Buffer {
  const { host, pathname } = new URL(endpoint);
  const bytes = Buffer.from(body);
  const all = {
    host,
    'content-type': 'application/json',
    accept: 'application/json',
    'content-length': bytes.length,
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`POST ${pathname} HTTP/1.1\r\n${lines.join('')}\r\n`), bytes]);
}
