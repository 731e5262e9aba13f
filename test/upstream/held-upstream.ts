import { systemClock, type Clock } from '../../src/clock.ts';
import type { Sender } from '../../src/upstream/request.ts';
import { openUpstream } from '../../src/upstream/upstream.ts';
import { proxyAgent } from '../../src/tokens/service.ts';
import { startService, type Service, type Reply } from '../service/service.ts';

/** The upstream folder alone, with a service that holds every request until it is released. */
export interface HeldUpstream extends AsyncDisposable {
  readonly service: Service;
  /** Sends a query that differs from others by its label. */
  ask(label: string, sender?: Partial<Sender>): Promise<Answered>;
  /** Labels of the requests, in the order of their arrival. */
  sent(): string[];
  /** Answers the requests with this label, also those to come. */
  release(label: string, reply?: Reply): void;
  /** Holds the requests with this label again. */
  hold(label: string): void;
}

interface Answered {
  readonly data?: unknown;
  readonly errors?: readonly { readonly message: string; readonly extensions?: object }[];
}

interface HeldUpstreamOptions {
  concurrency?: number;
  clock?: Clock;
  /** The environment variables that name proxies. */
  proxies?: Readonly<Record<string, string>>;
}

export async function startHeldUpstream({
  concurrency = 16,
  clock = systemClock,
  proxies = {},
}: HeldUpstreamOptions = {}): Promise<HeldUpstream> {
  const service = await startService();
  const upstream = openUpstream({
    baseUrl: service.url,
    agent: 'test',
    connect: (options) => proxyAgent(proxies, options),
    concurrency,
    timeoutMs: 30_000,
    tokens: {
      token: () => Promise.resolve({ value: 'token' }),
      afterRefusal: () => Promise.resolve(undefined),
      accepted: () => {},
      refused: () => {},
    },
    clock,
  });
  const gates = new Map<string, PromiseWithResolvers<Reply>>();
  const gateOf = (label: string) => {
    const gate = gates.get(label) ?? Promise.withResolvers<Reply>();
    gates.set(label, gate);
    return gate;
  };
  service.answer(async (response, received, sandbox) => {
    const reply = await gateOf(labelOf(received.body)).promise;
    return reply(response, received, sandbox);
  });
  return {
    service,
    ask: async (label, sender = {}) => {
      const query = 'query ($label: String) { echo(label: $label) }';
      const body = JSON.stringify({ query, variables: { label } });
      const { text } = await upstream.send({ kind: 'query', body }, { ...nobody(), ...sender });
      return JSON.parse(text) as Answered;
    },
    sent: () => service.received.map(({ body }) => labelOf(body)),
    release: (label, reply = echo) => gateOf(label).resolve(reply),
    hold: (label) => void gates.delete(label),
    [Symbol.asyncDispose]: async () => {
      await upstream.close();
      await service[Symbol.asyncDispose]();
    },
  };
}

/** The sender of requests that a test does not look at. */
function nobody(): Sender {
  const { signal } = new AbortController();
  return { signal, priority: 'interactive', caller: 'nobody', cause: undefined };
}

const echo: Reply = (response, { body }) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ data: { echo: labelOf(body) } }));
};

function labelOf(body: string): string {
  return (JSON.parse(body) as { variables: { label: string } }).variables.label;
}
