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
  /** Sends this many requests a second, whether or not earlier ones are answered. */
  | (Bodies & { readonly do: 'keep pace'; readonly perSecond: number })
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
  /** Milliseconds from when a request was due to the last byte of its answer. */
  readonly latency: { readonly median: number; readonly p99: number };
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
    case 'keep pace':
      return await press(command, command.perSecond);
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

async function press(load: Bodies, perSecond?: number): Promise<Pressed> {
  const requests = load.bodies.map((body) => requestFor(load, body));
  const { promise: failed, reject } = Promise.withResolvers<never>();
  const latencies: number[] = [];
  const idle: (() => void)[] = [];
  const due: number[] = [];
  const { promise: over, resolve: finish } = Promise.withResolvers<void>();
  let next = 0;
  let inFlight = 0;
  let ended = false;
  const sockets = await Promise.all(
    Array.from({ length: load.connections }, () => open(load.endpoint)),
  );
  const start = performance.now();
  for (const socket of sockets) {
    let since = 0;
    const send = (from: number) => {
      since = from;
      inFlight += 1;
      socket.write(requests[next++ % requests.length]!);
    };
    socket.on(
      'data',
      messageReader({
        head: (text) => {
          if (!text.startsWith('HTTP/1.1 200')) reject(new Error(`It answered: ${text}`));
        },
        end: () => {
          const now = performance.now();
          latencies.push(now - since);
          inFlight -= 1;
          if (ended) {
            if (inFlight === 0) finish();
          } else if (perSecond === undefined) send(now);
          else if (due.length > 0) send(due.shift()!);
          else idle.push(() => send(performance.now()));
        },
      }),
    );
    socket.on('error', reject).on('close', () => reject(new Error('A connection was closed.')));
    if (perSecond === undefined) send(performance.now());
    else idle.push(() => send(performance.now()));
  }
  let sent = 0;
  const pace =
    perSecond !== undefined &&
    setInterval(() => {
      for (; sent < ((performance.now() - start) * perSecond) / 1_000; sent += 1) {
        const free = idle.pop();
        if (free) free();
        else due.push(start + (sent * 1_000) / perSecond);
      }
    }, 1);
  const timer = setTimeout(() => {
    ended = true;
    if (pace) clearInterval(pace);
    if (inFlight === 0) finish();
  }, load.ms);
  try {
    await Promise.race([over, failed]);
  } finally {
    clearTimeout(timer);
    if (pace) clearInterval(pace);
    for (const socket of sockets) socket.removeAllListeners('close').destroy();
  }
  const seconds = (performance.now() - start) / 1_000;
  const sorted = latencies.toSorted((a, b) => a - b);
  const at = (part: number) => sorted[Math.floor((sorted.length - 1) * part)]!;
  return { done: latencies.length, seconds, latency: { median: at(0.5), p99: at(0.99) } };
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
