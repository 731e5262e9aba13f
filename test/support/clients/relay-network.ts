import { createRequire } from 'node:module';
import type { TestGateway } from '../gateway/gateway.ts';
import { ask, partsOf, type Payload } from './multipart.ts';

// Relay's runtime is CommonJS, and its types are in another package: these are only the parts used here.
const require = createRequire(import.meta.url);
export const relay = require('relay-runtime') as RelayRuntime;

/** Relay with the network layer of an application that streams. */
export function relayEnvironment(gateway: TestGateway): Environment {
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
export interface Environment {
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
