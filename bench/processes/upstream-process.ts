import { createServer, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import process from 'node:process';
import { setTimeout as wait } from 'node:timers/promises';
import { startService, type Service } from '../../test/service/service.ts';
import { messageReader } from '../http-messages.ts';

export interface UpstreamOptions {
  readonly persons: number;
  /** Milliseconds before each answer. */
  readonly latency?: number;
}

export interface UpstreamAddress {
  readonly url: string;
  readonly tokenLink: string;
}

export type UpstreamCommand =
  /** Serves this many persons from now on. Each list keeps the answers that were prepared for it. */
  | { readonly do: 'serve'; readonly list: string; readonly persons: number }
  /** Answers requests for an operation called Large with one page of this many items, from now on. */
  | { readonly do: 'enlarge'; readonly items: number }
  | { readonly do: 'look' };

export interface UpstreamState {
  /** Requests to /graphql so far. */
  readonly requests: number;
  /** Requests whose answers were not prepared. */
  readonly unprepared: number;
}

interface List {
  readonly sandbox: Service;
  readonly token: string;
  readonly prepared: Map<string, Buffer>;
}

/**
 * Answers a request that it has seen before with the same bytes, so that it costs this machine almost nothing. Other
 * requests are answered by a sandbox in this process. Every token is valid.
 */
const { persons, latency = 0 } = JSON.parse(process.argv[2]!) as UpstreamOptions;
const lists = new Map<string, List>();
let list = await listOf('first', persons);
let requests = 0;
let unprepared = 0;
let large: Buffer | undefined;
let refreshes = 0;

const server = createServer({ noDelay: true }, serve);
server.listen(0, '127.0.0.1', () => {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  process.send!({ url, tokenLink: `${url}/token_links/bench` } satisfies UpstreamAddress);
});
process.on('message', (command: UpstreamCommand) => void obey(command));
process.on('disconnect', () => process.exit());

async function obey(command: UpstreamCommand): Promise<void> {
  if (command.do === 'serve') list = await listOf(command.list, command.persons);
  if (command.do === 'enlarge') large = message(largePage(command.items));
  process.send!({ requests, unprepared } satisfies UpstreamState);
}

function serve(socket: Socket): void {
  let path = '';
  let parts: string[] = [];
  const read = messageReader({
    head: (text) => (path = text.slice(text.indexOf(' ') + 1, text.indexOf(' HTTP/'))),
    body: (part) => void parts.push(part.toString('latin1')),
    end: () => {
      const body = parts.length === 1 ? parts[0]! : parts.join('');
      parts = [];
      const ready = path === '/graphql' && latency === 0 ? preparedAnswer(body) : undefined;
      if (ready) socket.write(ready);
      else void answer(path, body).then((bytes) => socket.write(bytes));
    },
  });
  socket.on('data', read).on('error', () => socket.destroy());
}

function preparedAnswer(body: string): Buffer | undefined {
  const bytes = large && body.includes('query Large') ? large : list.prepared.get(body);
  if (bytes) requests += 1;
  return bytes;
}

async function answer(path: string, body: string): Promise<Buffer> {
  if (path === '/auth_check') return Buffer.from('HTTP/1.1 204 No Content\r\n\r\n');
  if (path !== '/graphql') return message(JSON.stringify(newTokens()));
  if (latency > 0) await wait(latency);
  const ready = preparedAnswer(body);
  if (ready) return ready;
  requests += 1;
  unprepared += 1;
  const { sandbox, token, prepared } = list;
  const response = await fetch(`${sandbox.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: Buffer.from(body, 'latin1'),
  });
  const bytes = message(await response.text());
  prepared.set(body, bytes);
  return bytes;
}

function newTokens() {
  refreshes += 1;
  return {
    name: 'Bench',
    access_token: `bench-access-token-number-${refreshes}`,
    expires_in: 86_400,
    refresh_token: `bench-refresh-token-number-${refreshes}`,
    refresh_token_expires_in: 10_368_000,
    token_type: 'bearer',
    created_at: Math.floor(Date.now() / 1_000),
  };
}

/** Returns an answer to `{ persons { items { id firstName } } }`. */
function largePage(length: number): string {
  const items = Array.from({ length }, (_, id) => ({ id, firstName: `First name ${id}` }));
  return JSON.stringify({ data: { persons: { items } } });
}

function message(json: string): Buffer {
  const body = Buffer.from(json);
  const type = 'Content-Type: application/json; charset=utf-8';
  const head = `HTTP/1.1 200 OK\r\n${type}\r\nContent-Length: ${body.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}

/** Lists differ in their ids: a list that replaces another is new to every client. */
async function listOf(name: string, count: number): Promise<List> {
  const known = lists.get(name);
  if (known) return known;
  const sandbox = await startService({ persons: count });
  for (let time = 0; time < lists.size; time += 1) {
    sandbox.persons.remove(0, count);
    sandbox.persons.insert(0, count);
  }
  const set = (await (await fetch(sandbox.tokenLink)).json()) as { access_token: string };
  const made = { sandbox, token: set.access_token, prepared: new Map<string, Buffer>() };
  lists.set(name, made);
  return made;
}
