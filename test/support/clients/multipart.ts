import type { GraphQLFormattedError } from 'graphql';
import type { TestGateway } from '../gateway/gateway.ts';
import { wrote } from '../gateway/written.ts';

/** One part of an answer in parts (proposal of 2022-08-24). */
export interface Payload {
  data?: Record<string, unknown> | null;
  errors?: ReceivedError[];
  incremental?: {
    items?: unknown[] | null;
    data?: unknown;
    path: (string | number)[];
    label?: string;
    errors?: ReceivedError[];
    extensions?: { resumeAfter: string; listLength?: number };
  }[];
  hasNext?: boolean;
}

export type ReceivedError = GraphQLFormattedError & { extensions: Record<string, unknown> };

/**
 * The parts as they arrive, read strictly as multipart/mixed: malformed parts throw. A whole answer is one. A caller
 * that stops reading leaves.
 */
export async function* partsOf(response: Response): AsyncGenerator<Payload, void, undefined> {
  const type = response.headers.get('content-type') ?? '';
  if (type.startsWith('application/json')) {
    yield JSON.parse(wrote(await response.text())) as Payload;
    return;
  }
  if (!type.startsWith('multipart/mixed; boundary="-"')) throw new Error(`Not in parts: ${type}`);
  const body = response.body![Symbol.asyncIterator]();
  let text = Buffer.alloc(0);
  const take = async (until: string | number): Promise<string> => {
    for (;;) {
      const end = typeof until === 'number' ? until : text.indexOf(until) + until.length;
      const isThere = typeof until === 'number' ? text.length >= until : text.includes(until);
      if (isThere) {
        const taken = text.subarray(0, end).toString('utf8');
        text = text.subarray(end);
        return taken;
      }
      const { done, value } = await body.next();
      if (done) throw new Error(`The answer ended in the middle: ${text.toString('utf8')}`);
      text = Buffer.concat([text, value]);
    }
  };
  const expect = async (expected: string) => {
    const got = await take(expected.length);
    if (got !== expected)
      throw new Error(`${JSON.stringify(got)}, not ${JSON.stringify(expected)}`);
  };
  try {
    await expect('\r\n---');
    for (;;) {
      if ((await take(2)) === '--') break;
      const headers = await take('\r\n\r\n');
      const length = /^content-length: (\d+)\r$/im.exec(headers)?.[1];
      yield JSON.parse(wrote(await take(Number(length)))) as Payload;
      await expect('\r\n---');
    }
    await expect('\r\n');
    if (!(await body.next()).done || text.length > 0) throw new Error('Something follows the end.');
  } finally {
    await body.return?.();
  }
}

/** Posts an operation; without an `accept` header if that is null. */
export function ask(
  gateway: Pick<TestGateway, 'fetch'>,
  query: string,
  variables: Record<string, unknown> = {},
  accept: string | null = 'multipart/mixed',
): Promise<Response> {
  return gateway.fetch('/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(accept !== null && { accept }) },
    body: JSON.stringify({ query, variables }),
  });
}

/** Returns all parts of an answer. */
export async function all(
  gateway: TestGateway,
  query: string,
  variables?: Record<string, unknown>,
): Promise<Payload[]> {
  return gathered(partsOf(await ask(gateway, query, variables, IN_PARTS)));
}

const IN_PARTS = 'multipart/mixed;deferSpec=20220824';

/** An answer whose parts are joined. */
export interface JoinedAnswer {
  readonly data: Payload['data'];
  /** The errors of all parts, in an order that depends only on their contents. */
  readonly errors: readonly ReceivedError[];
}

export type Accepted = 'application/json' | typeof IN_PARTS;

/** The formats that clients can accept. */
export const ACCEPTED: readonly Accepted[] = ['application/json', IN_PARTS];

/** The answer to a client that accepts one format, which may come whole or in parts. */
export async function joinedAnswer(
  gateway: Pick<TestGateway, 'fetch'>,
  { query, variables }: { readonly query: string; readonly variables: Record<string, unknown> },
  accept: Accepted,
): Promise<JoinedAnswer> {
  const response = await ask(gateway, query, variables, `${accept}, application/json;q=0.9`);
  const payloads = await gathered(partsOf(response));
  const increments = payloads.flatMap(({ incremental = [] }) => incremental);
  const lacking = increments.filter(({ items, data }) => items === null || data === null);
  const joined = payloads.map((payload) => ({
    ...payload,
    incremental: payload.incremental?.filter((part) => !lacking.includes(part)) ?? [],
  }));
  const errors = [...payloads, ...increments].flatMap(({ errors: reported = [] }) => reported);
  return {
    data: payloads[0]!.data ? putTogether(joined) : payloads[0]!.data,
    errors: errors.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)),
  };
}

export async function next(parts: AsyncGenerator<Payload, void>): Promise<Payload> {
  const { value } = await parts.next();
  if (!value) throw new Error('There are no further parts.');
  return value;
}

export function list(payload: Payload | undefined, key = 'allPersons'): unknown[] {
  return payload?.data?.[key] as unknown[];
}

/** Joins the parts of a list. */
export function whole([first, ...later]: Payload[], key = 'allPersons'): unknown[] {
  const streamed = later.flatMap(({ incremental = [] }) => incremental);
  const items = streamed.filter(({ path }) => path[0] === key).flatMap((part) => part.items ?? []);
  return [...list(first, key), ...items];
}

/** Joins all parts at their paths, as a client does. */
export function putTogether([first, ...later]: Payload[]): Payload['data'] {
  const data = structuredClone(first!.data);
  const held = (keys: (string | number)[]) =>
    keys.reduce<unknown>((value, key) => (value as Record<string | number, unknown>)[key], data);
  for (const { path, ...part } of later.flatMap(({ incremental = [] }) => incremental)) {
    if (part.items === undefined) {
      merge(held(path) as object, part.data as object);
      continue;
    }
    const items = held(path.slice(0, -1)) as unknown[];
    if (items.length !== path.at(-1)) throw new Error(`${path.join('.')}, not ${items.length}`);
    items.push(...(part.items ?? []));
  }
  return data;
}

/** Adds the fields of a part. Several parts may contain the same field, with the same objects and lists. */
function merge(held: object, more: object): void {
  for (const [key, value] of Object.entries(more) as [string, unknown][]) {
    const previous = (held as Record<string, unknown>)[key];
    const isBoth = [previous, value].every((side) => typeof side === 'object' && side !== null);
    if (isBoth) merge(previous as object, value as object);
    else (held as Record<string, unknown>)[key] = value;
  }
}

export async function gathered(parts: AsyncIterable<Payload>): Promise<Payload[]> {
  const payloads: Payload[] = [];
  for await (const part of parts) payloads.push(part);
  return payloads;
}
