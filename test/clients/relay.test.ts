import { createRequire } from 'node:module';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { compileRelayApp, type RelayApp } from '../support/clients/relay-app.ts';

// Relay's runtime is CommonJS, and its types are kept elsewhere: only what is used here.
const require = createRequire(import.meta.url);
const relay = require('relay-runtime') as RelayRuntime;

/** What a component with usePaginationFragment would hold. */
const COMPONENT = `
import { graphql } from 'relay-runtime';
export const query = graphql\`
  query peopleQuery {
    ...people_list
  }
\`;
export const fragment = graphql\`
  fragment people_list on Query
  @refetchable(queryName: "peoplePaginationQuery")
  @argumentDefinitions(count: { type: "Int", defaultValue: 60 }, cursor: { type: "String" }) {
    personsConnection(first: $count, after: $cursor) @connection(key: "people_list_personsConnection") {
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

let app: RelayApp;

beforeAll(() => {
  app = compileRelayApp({ 'people.js': COMPONENT });
});
afterAll(() => app.remove());

test("Relay's compiler accepts the schema, and its store joins the pages of a connection", async () => {
  await using gateway = await startGatewayOverSandbox({ persons: 137 });
  const environment = relayEnvironment(gateway);
  const list = app.artifact('people_list');
  const first = relay.createOperationDescriptor(app.artifact('peopleQuery'), {});
  await environment.execute({ operation: first }).toPromise();

  const shown = () => {
    const owner = environment.lookup(first.fragment).data;
    const selector = relay.getSingularSelector(list, owner);
    return environment.lookup(selector).data.personsConnection;
  };
  expect(shown().edges).toHaveLength(60);
  while (shown().pageInfo.hasNextPage) {
    const more = relay.createOperationDescriptor(app.artifact('peoplePaginationQuery'), {
      count: 60,
      cursor: shown().pageInfo.endCursor,
    });
    await environment.execute({ operation: more }).toPromise();
  }
  expect(shown().edges.map(({ node }) => node.id)).toEqual(
    gateway.sandbox.persons.all().map(({ id }) => id),
  );
});

function relayEnvironment(gateway: TestGateway): Environment {
  const { Environment, Network, RecordSource, Store } = relay;
  return new Environment({
    network: Network.create(({ text }: { text: string }, variables: Record<string, unknown>) =>
      gateway.ask(text, variables),
    ),
    store: new Store(new RecordSource()),
  });
}

interface Operation {
  readonly fragment: object;
}
interface Environment {
  execute(what: { operation: Operation }): { toPromise(): Promise<unknown> };
  lookup(selector: object): {
    data: {
      personsConnection: {
        edges: { node: { id: string } }[];
        pageInfo: { hasNextPage: boolean; endCursor: string };
      };
    };
  };
}
interface RelayRuntime {
  Environment: new (config: object) => Environment;
  Network: { create(fetch: unknown): object };
  RecordSource: new () => object;
  Store: new (source: object) => object;
  createOperationDescriptor(query: object, variables: object): Operation;
  getSingularSelector(fragment: object, owner: unknown): object;
}
