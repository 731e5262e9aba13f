import { systemClock, type Clock } from '../../src/clock.ts';
import type { Json } from '../../src/json.ts';
import { inOneStep, type Pausable } from '../../src/pausable.ts';
import { ServiceRequest, type Sender } from '../../src/service/request.ts';
import { createServiceExecutor, type Upstream } from '../../src/upstream/executor.ts';
import {
  startFakeUpstream,
  type FakeUpstream,
  type Reply,
} from '../support/imitations/scripted.ts';

/** The upstream folder alone, with a service that holds every request until it is released. */
export interface HeldUpstream extends AsyncDisposable {
  readonly service: FakeUpstream;
  /** Sends a query that differs from others by its label. */
  ask(label: string, sender?: Partial<Sender>, field?: string): Promise<Answered>;
  /** Labels of the requests, in the order of their arrival. */
  sent(): string[];
  /** Answers the requests with this label, also those to come. */
  release(label: string, reply?: Reply): void;
  load(): Upstream['load'];
}

interface Answered {
  readonly data?: unknown;
  readonly errors?: readonly { readonly message: string; readonly extensions?: object }[];
}

interface HeldUpstreamOptions {
  concurrency?: number;
  fields?: number;
  clock?: Clock;
  /** Reads all answers before JSON is made of them. */
  scan?: (bytes: Buffer) => Pausable<undefined>;
}

export async function startHeldUpstream({
  concurrency = 16,
  fields = 1,
  clock = systemClock,
  scan,
}: HeldUpstreamOptions = {}): Promise<HeldUpstream> {
  const service = await startFakeUpstream();
  const upstream = createServiceExecutor({
    baseUrl: service.url,
    agent: 'test',
    concurrency,
    fields,
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
    ask: async (label, sender = {}, field = 'echo') => {
      const request = {
        kind: 'query',
        field,
        body: JSON.stringify({
          query: `query ($label: String) { ${field}(label: $label) }`,
          variables: { label },
        }),
        scan,
        read: ({ raw }: Json) => inOneStep(JSON.parse(raw) as Answered),
      } as const;
      const { reading } = await upstream.execute(
        new ServiceRequest<Answered>(request, { ...nobody(), ...sender }),
      );
      return reading;
    },
    sent: () => service.received.map(({ body }) => labelOf(body)),
    load: () => upstream.load,
    release: (label, reply = echo) => gateOf(label).resolve(reply),
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
