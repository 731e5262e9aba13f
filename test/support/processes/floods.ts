import { connect } from 'node:net';
import { setTimeout as pass } from 'node:timers/promises';
import { Pool } from 'undici';
import type { Outcomes } from './mixed-load.ts';

/** How many requests of each kind are sent. */
export interface FloodSizes {
  /** Operations of which each is invalid in its own way. */
  readonly invalid: number;
  /** With variables of 950 kB; a quarter of them at a time. */
  readonly large: number;
  /** Equal, all of a hundred at once on one connection, with 12 kB of headers. */
  readonly pipelined: number;
  /** With headers, and a body that never arrives. */
  readonly stalled: number;
}

/** The time for which a connection without an answer is kept, ms. */
const STALLED_MS = 2_000;
/** The longest time in which an answer is waited for, ms: on a busy machine, each takes its time. */
const LONGEST_MS = 30_000;
/** Between hundreds of connections: the time to open them is not what is tested. */
const RAMP_MS = 100;
const AT_A_TIME = 8;
const PIPELINED = 100;
const QUERY = '{ persons(first: 1) { items { id } } }';
const LONG_HEADERS = Array.from({ length: 80 }, (_, at) => `x-h${at}: ${'v'.repeat(140)}\r\n`);
const MANY_HEADERS = Array.from({ length: 960 }, (_, at) => `h${at}: v\r\n`);

/**
 * Sends all kinds at the same time, and ends all connections.
 *
 * @param round later ones send other operations
 * @returns how often each status was received, and `closed` for a connection without an answer
 */
export async function flood(origin: string, sizes: FloodSizes, round = 0): Promise<Outcomes> {
  const outcomes: Outcomes = new Map();
  const count = (name: string) => void outcomes.set(name, (outcomes.get(name) ?? 0) + 1);
  await Promise.all([invalid(), large(), pipelined(), stalled()]);
  return outcomes;

  async function invalid(): Promise<void> {
    const texts = Array.from({ length: sizes.invalid }, (_, at) => `{nope${round}x${at}{x}}`);
    await post(AT_A_TIME, texts.map(invalidBody));
  }

  async function large(): Promise<void> {
    const bodies = Array.from({ length: sizes.large }, (_, at) => () => largeBody(at));
    await post(Math.ceil(sizes.large / 4), bodies);
  }

  async function post(connections: number, bodies: (() => string)[]): Promise<void> {
    const pool = new Pool(origin, { connections, pipelining: 1 });
    const headers = { 'content-type': 'application/json' };
    const left = bodies.values();
    const caller = async () => {
      for (const body of left) {
        try {
          const request = { method: 'POST', path: '/graphql', headers, body: body() } as const;
          const answer = await pool.request(request);
          await answer.body.dump();
          count(String(answer.statusCode));
        } catch {
          count('closed');
        }
      }
    };
    await Promise.all(Array.from({ length: connections }, caller));
    await pool.destroy();
  }

  async function pipelined(): Promise<void> {
    const request = requestOf(LONG_HEADERS, QUERY.length);
    const connections = Math.ceil(sizes.pipelined / PIPELINED);
    await Promise.all(
      Array.from({ length: connections }, () =>
        held((request + bodyOf(QUERY)).repeat(PIPELINED), PIPELINED, LONGEST_MS),
      ),
    );
  }

  async function stalled(): Promise<void> {
    const silent = requestOf(LONG_HEADERS, QUERY.length);
    const refused = requestOf(MANY_HEADERS, QUERY.length);
    const all: Promise<void>[] = [];
    for (let at = 0; at < sizes.stalled; at += 1) {
      all.push(at % 2 === 0 ? held(silent, 1, STALLED_MS) : held(refused, 1, LONGEST_MS));
      if (at % 100 === 99) await pass(RAMP_MS);
    }
    await Promise.all(all);
  }

  /** Sends a text on a connection of its own, and waits for the answers for a while. */
  function held(text: string, answers: number, ms: number): Promise<void> {
    const { hostname, port } = new URL(origin);
    return new Promise((done) => {
      let received = 0;
      let end: NodeJS.Timeout | undefined;
      const socket = connect(Number(port), hostname, () => {
        socket.write(text);
        end = setTimeout(() => socket.destroy(), ms);
      });
      socket.setEncoding('latin1').on('data', (part: string) => {
        for (const [, status] of part.matchAll(/HTTP\/1\.1 (\d{3})/g)) {
          received += 1;
          count(status!);
        }
        if (received >= answers) socket.destroy();
      });
      socket.on('error', () => {});
      socket.once('close', () => {
        clearTimeout(end);
        if (received === 0) count('closed');
        done();
      });
    });
  }
}

function invalidBody(query: string): () => string {
  return () => JSON.stringify({ query });
}

function largeBody(at: number): string {
  const query = `query ($after: String) { persons(first: 1, after: $after) { items { n${at}: id } } }`;
  return JSON.stringify({ query, variables: { after: 'x'.repeat(950_000) } });
}

function requestOf(headers: readonly string[], length: number): string {
  const head = `POST /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n`;
  return `${head}${headers.join('')}content-length: ${length + BODY.length}\r\n\r\n`;
}

const BODY = '{"query":""}';

function bodyOf(query: string): string {
  return `{"query":"${query}"}`;
}
