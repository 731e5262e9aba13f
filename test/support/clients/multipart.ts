import type { GraphQLFormattedError } from 'graphql';
import type { TestGateway } from '../gateway/gateway.ts';
import { wrote } from '../gateway/written.ts';
import { post } from './post.ts';

/** One part of an answer in parts (proposal of 2022-08-24). */
export interface Payload {
  data?: Record<string, unknown> | null;
  errors?: ReceivedError[];
  incremental?: {
    items?: unknown[] | null;
    path: (string | number)[];
    label?: string;
    errors?: ReceivedError[];
    extensions?: { resumeAfter: string };
  }[];
  hasNext?: boolean;
}

type ReceivedError = GraphQLFormattedError & { extensions: Record<string, unknown> };

/** The parts as they arrive. A whole answer is one. A caller that stops reading leaves. */
export async function* partsOf(response: Response): AsyncGenerator<Payload, void, undefined> {
  const type = response.headers.get('content-type') ?? '';
  if (type.startsWith('application/json')) {
    yield JSON.parse(wrote(await response.text())) as Payload;
    return;
  }
  if (!type.startsWith('multipart/mixed; boundary="-"')) throw new Error(`Not in parts: ${type}`);
  let text = '';
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    const parts = `${text}${chunk}`.split(BOUNDARY);
    text = parts.pop()!;
    for (const part of parts.filter((each) => each !== '')) {
      const [, json = ''] = part.split('\r\n\r\n');
      yield JSON.parse(wrote(json)) as Payload;
    }
  }
  if (text !== '--\r\n') throw new Error(`This is no end of an answer in parts: ${text}`);
}

const BOUNDARY = '\r\n---';

interface Operation {
  readonly query: string;
  readonly variables: Readonly<Record<string, unknown>>;
  readonly operationName?: string | undefined;
}

/** Posts an operation; without an `accept` header if that is null. */
export function ask(
  gateway: Pick<TestGateway, 'fetch'>,
  query: string,
  variables: Record<string, unknown> = {},
  accept: string | null = 'multipart/mixed',
): Promise<Response> {
  return gateway.fetch('/graphql', post({ query, variables }, accept === null ? {} : { accept }));
}

/** Returns all parts of an answer. */
export async function all(
  gateway: TestGateway,
  query: string,
  variables?: Record<string, unknown>,
): Promise<Payload[]> {
  return Array.fromAsync(partsOf(await ask(gateway, query, variables, IN_PARTS)));
}

/** What clients of the proposal of 2022-08-24 accept. */
export const IN_PARTS = 'multipart/mixed;deferSpec=20220824';

/** An answer whose parts are joined. */
interface JoinedAnswer {
  readonly data: Payload['data'];
  /** The errors of all parts, in an order that depends only on their contents. */
  readonly errors: readonly ReceivedError[];
}

type Accepted = 'application/json' | typeof IN_PARTS;

/** The formats that clients can accept. */
export const ACCEPTED: readonly Accepted[] = ['application/json', IN_PARTS];

/** The answer to a client that accepts one format, which may come whole or in parts. */
export async function joinedAnswer(
  gateway: Pick<TestGateway, 'fetch'>,
  operation: Operation,
  accept: Accepted,
): Promise<JoinedAnswer> {
  const response = await gateway.fetch(
    '/graphql',
    post(operation, { accept: `${accept}, application/json;q=0.9` }),
  );
  const payloads = await Array.fromAsync(partsOf(response));
  const increments = payloads.flatMap(({ incremental = [] }) => incremental);
  const lacking = increments.filter(({ items }) => items === null);
  const errors = [...payloads, ...increments].flatMap(({ errors: reported = [] }) => reported);
  const data = payloads[0]!.data && putTogether(payloads);
  // An answer that is whole has nothing of a list that fails at its end.
  for (const { path } of lacking) data![path[0]!] = null;
  return {
    data,
    errors: errors.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)),
  };
}

/** Joins all parts at their paths, as a client does. */
export function putTogether([first, ...later]: Payload[]): Payload['data'] {
  const data = structuredClone(first!.data);
  const held = (keys: (string | number)[]) =>
    keys.reduce<unknown>((value, key) => (value as Record<string | number, unknown>)[key], data);
  for (const { path, items = [] } of later.flatMap(({ incremental = [] }) => incremental)) {
    const before = held(path.slice(0, -1)) as unknown[];
    if (before.length !== path.at(-1)) throw new Error(`${path.join('.')}, not ${before.length}`);
    before.push(...(items ?? []));
  }
  return data;
}
