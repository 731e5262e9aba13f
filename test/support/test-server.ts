import { createServer, type RequestListener } from 'node:http';
import type { Server } from 'node:net';
import { onTestFinished } from 'vitest';
import { listening } from './listening.ts';

/** Starts an HTTP server, and closes it after the test. Returns its address. */
export async function startServer(listener: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listenForTest(createServer(listener), '127.0.0.1')}`;
}

/** Starts a server as `listening` does, and closes it after the test. Returns its port. */
export async function listenForTest(server: Server, host?: string): Promise<number> {
  const started = await listening(server, host);
  onTestFinished(() => started[Symbol.asyncDispose]());
  return started.port;
}
