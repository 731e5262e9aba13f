import { createRequire } from 'node:module';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { ask, partsOf, type Payload } from '../support/clients/multipart.ts';
import { compileRelayApp, type RelayApp } from '../support/clients/relay-app.ts';

// Relay's runtime is CommonJS, and its types are kept elsewhere: only what is used here.
const require = createRequire(import.meta.url);
const relay = require('relay-runtime') as RelayRuntime;

const COMPONENT = `
import { graphql } from 'relay-runtime';
export const query = graphql\`
  query streamedQuery($count: Int!) {
    personsConnection(first: 60) @stream_connection(key: "streamed_personsConnection", initial_count: $count) {
      edges {
        node {
          id
          firstName
        }
      }
    }
  }
\`;
`;

const PUT_OFF = `
import { graphql } from 'relay-runtime';
export const query = graphql\`
  query deferredQuery {
    allPersons(limit: 120) @stream(label: "all", initialCount: 1) {
      id
      ...deferred_name @defer(label: "name")
    }
    ...deferred_first @defer(label: "first")
  }
\`;
export const name = graphql\`
  fragment deferred_name on Person {
    firstName
  }
\`;
export const first = graphql\`
  fragment deferred_first on Query {
    persons(first: 2) {
      items {
        firstName
      }
    }
  }
\`;
`;

let app: RelayApp;

beforeAll(() => {
  app = compileRelayApp({ 'streamed.js': COMPONENT, 'deferred.js': PUT_OFF });
});
afterAll(() => app.remove());

test("Relay's @stream_connection fills a connection edge by edge, and then its pageInfo", async () => {
  await using gateway = await startGatewayOverSandbox({ persons: 137 });
  const environment = relayEnvironment(gateway);
  const query = app.artifact('streamedQuery');
  const operation = relay.createOperationDescriptor(query, { count: 5 });
  const shown = () => environment.lookup(operation.fragment).data?.personsConnection;
  const lengths: number[] = [];
  await new Promise<void>((done, fail) => {
    environment.execute({ operation }).subscribe({
      next: () => lengths.push(shown()?.edges.length ?? 0),
      complete: done,
      error: fail,
    });
  });
  expect(lengths[0]).toBe(5);
  expect(shown()?.pageInfo.hasNextPage).toBe(true);
  expect(shown()?.edges.map(({ node }) => node.id)).toEqual(
    gateway.sandbox.persons.slice(0, 60).map(({ id }) => id),
  );
});

test("Relay's labelled @defer works beside and inside a streamed list", async () => {
  await using gateway = await startGatewayOverSandbox({ persons: 137 });
  const environment = relayEnvironment(gateway);
  const query = app.artifact('deferredQuery');
  const operation = relay.createOperationDescriptor(query, {});
  await new Promise<void>((done, fail) => {
    environment.execute({ operation }).subscribe({ next: () => {}, complete: done, error: fail });
  });
  const source = environment.getStore().getSource();
  const names = gateway.sandbox.persons.slice(0, 120).map(({ firstName }) => firstName);
  const shown = source
    .getRecordIDs()
    .map((id) => source.get(id))
    .filter((record) => record?.['__typename'] === 'Person');
  expect(shown.map((record) => record?.['firstName'])).toEqual(names);
  expect(Object.keys(source.get('client:root') ?? {})).toContain('persons(first:2)');
});

function relayEnvironment(gateway: TestGateway): Environment {
  const { Environment, Network, Observable, RecordSource, Store } = relay;
  const fetch = ({ text }: { text: string }, variables: Record<string, unknown>) =>
    Observable.create((sink) => {
      const send = async () => {
        for await (const part of partsOf(await ask(gateway, text, variables))) {
          for (const payload of relayPayloads(part)) sink.next(payload);
        }
        sink.complete();
      };
      send().catch(sink.error);
    });
  return new Environment({ network: Network.create(fetch), store: new Store(new RecordSource()) });
}

/** What an application's network layer does: Relay takes one item at a time, and calls its parts data. */
function* relayPayloads({ incremental, hasNext, ...whole }: Payload): Generator<object> {
  const extensions = { is_final: hasNext === false };
  if ('data' in whole) yield { ...whole, extensions };
  for (const { items, path, data, ...part } of incremental ?? []) {
    if (data) yield { ...part, data, path, extensions };
    const first = Number(path.at(-1));
    for (const [index, item] of (items ?? []).entries()) {
      yield { ...part, data: item, path: [...path.slice(0, -1), first + index], extensions };
    }
  }
}

interface Sink {
  next(payload: object): void;
  complete(): void;
  error(this: void, reason: Error): void;
}
interface Operation {
  readonly fragment: object;
}
interface Environment {
  getStore(): {
    getSource(): {
      getRecordIDs(): string[];
      get(id: string): Record<string, unknown> | undefined;
    };
  };
  execute(what: { operation: Operation }): {
    subscribe(observer: { next(): void; complete(): void; error(reason: Error): void }): void;
  };
  lookup(selector: object): {
    data?: {
      personsConnection?: {
        edges: { node: { id: string } }[];
        pageInfo: { hasNextPage: boolean };
      };
    };
  };
}
interface RelayRuntime {
  Environment: new (config: object) => Environment;
  Network: { create(fetch: unknown): object };
  Observable: { create(source: (sink: Sink) => void): object };
  RecordSource: new () => object;
  Store: new (source: object) => object;
  createOperationDescriptor(query: object, variables: object): Operation;
}
