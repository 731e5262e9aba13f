import { connect } from 'node:net';
import { Pool } from 'undici';

export interface MixedLoad {
  /** Sends this many requests of all kinds, as many at a time as there are callers. */
  run(requests: number): Promise<void>;
  /** What came of them: `answered`, an error code, `left`, or a failure, each with its first answer. */
  readonly outcomes: ReadonlyMap<string, { readonly example: string }>;
  close(): Promise<void>;
}

const HEADERS = { 'content-type': 'application/json', accept: 'application/json' };
const STREAM = { ...HEADERS, accept: 'multipart/mixed;deferSpec=20220824, application/json' };

/** How many different documents there are of most kinds. */
const LABELS = 2_000;

/** Callers who request everything, leave early and make mistakes, on kept connections. */
export function startMixedLoad(origin: string, callers: number): MixedLoad {
  const outcomes = new Map<string, { example: string }>();
  const pool = new Pool(origin, { connections: callers, pipelining: 1 });
  let count = 0;

  return {
    outcomes,
    run: async (requests) => {
      const end = count + requests;
      const caller = async () => {
        while (count < end) {
          count += 1;
          const [outcome, example = ''] = await askOne(count).catch(reasonOf);
          if (!outcomes.has(outcome)) outcomes.set(outcome, { example });
        }
      };
      await Promise.all(Array.from({ length: callers }, caller));
    },
    close: () => pool.destroy(),
  };

  function askOne(number: number): Promise<Outcome> {
    const label = `i${number % LABELS}`;
    switch (number % 25) {
      case 0:
        return ask(`{ allPersons { ${label}: id firstName } }`);
      case 1:
        return ask(`{ personsConnection(first: 70) { edges { cursor node { ${label}: id } } } }`);
      case 2:
        return ask(`{ personsConnection(last: 5) { totalCount nodes { ${label}: id } } }`);
      case 3:
        // Each time other ids, of which nothing may be kept; the number of documents that are kept is bounded.
        return ask(`query ($id: ID!) { person(id: $id) { ${label}: id } }`, {
          variables: { id: String(number) },
        });
      case 4:
        return ask(`{ persons(first: 5) { items { ${label}: id } } }`, { leaveAfter: number % 7 });
      case 5:
        return ask(`{ allPersons { ${label}: id } }`, { leaveAfter: number % 11 });
      case 6:
        return ask(`{ nobody { ${label} } }`);
      case 7:
        return ask(`{ allPersons @stream(initialCount: 1) { ${label}: id } }`, { headers: STREAM });
      case 8:
        return leaveInTheMiddle();
      default:
        return ask(`{ persons(first: ${1 + (number % 50)}) { items { ${label}: id } } }`);
    }
  }

  async function ask(
    query: string,
    {
      variables,
      headers = HEADERS,
      leaveAfter,
    }: {
      variables?: Record<string, unknown>;
      headers?: Record<string, string>;
      leaveAfter?: number;
    } = {},
  ): Promise<Outcome> {
    const { body } = await pool.request({
      method: 'POST',
      path: '/graphql',
      headers,
      body: JSON.stringify({ query, variables }),
      ...(leaveAfter !== undefined && { signal: AbortSignal.timeout(leaveAfter) }),
    });
    const text = await body.text();
    const code = /"code":"(\w+)"/.exec(text)?.[1];
    return [code ?? (text.includes('"data"') ? 'answered' : 'nothing'), text.slice(0, 1_000)];
  }

  function leaveInTheMiddle(): Promise<Outcome> {
    const { hostname, port } = new URL(origin);
    return new Promise((resolve) => {
      const socket = connect(Number(port), hostname, () => {
        socket.write(
          'POST /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{',
          () => socket.destroy(),
        );
      });
      socket.on('error', () => undefined).once('close', () => resolve(['left']));
    });
  }
}

type Outcome = [name: string, answer?: string];

function reasonOf(error: unknown): Outcome {
  const { name, code } = error as { name: string; code?: string };
  return [name === 'TimeoutError' ? 'left' : `broken: ${code ?? name}`];
}
