import { createRequire } from 'node:module';
import { createEnvironment } from '../../../examples/relay/environment.ts';
import type { TestGateway } from '../gateway/gateway.ts';

// Relay's runtime is CommonJS, and its types are in another package: these are only the parts used here.
const require = createRequire(import.meta.url);
export const relay = require('relay-runtime') as RelayRuntime;

/** Relay as in examples/relay. */
export function relayEnvironment(
  { fetch }: TestGateway,
  onBroken: (error: Error) => void = () => {},
): Environment {
  const send = (_url: unknown, init?: RequestInit) => fetch('/graphql', init);
  return createEnvironment('', () => ({}), onBroken, send) as Environment;
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
  createOperationDescriptor(query: object, variables: object): Operation;
}
