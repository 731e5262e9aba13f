import type { GraphQLSchema } from 'graphql';
import pino from 'pino';
import { systemClock } from '../../../src/clock.ts';
import {
  createAdmission,
  type AdmissionParts,
  type AdmissionSettings,
} from '../../../src/http/auth/admission.ts';
import type { Caller } from '../../../src/http/exchange.ts';
import { handlerFor } from '../../support/gateway/stages.ts';
import type { Body } from '../front.ts';

export interface Door {
  ask(
    query: string,
    headers?: Record<string, string>,
    operationName?: string,
  ): Promise<ExecutedRequest>;
  /** The caller of the last executed request. */
  readonly caller: Caller | undefined;
  readonly logged: Record<string, unknown>[];
}

export interface ExecutedRequest extends Body {
  status: number;
}

/** Only the admission of callers, in front of a schema. */
export function openDoor(
  schema: GraphQLSchema,
  parts: Partial<AdmissionSettings & AdmissionParts>,
): Door {
  const logged: Record<string, unknown>[] = [];
  const log = pino(
    { level: 'trace' },
    { write: (line: string) => void logged.push(JSON.parse(line)) },
  );
  const admission = createAdmission(
    { apiKeys: [], jwt: undefined, ...parts },
    { proxyFor: () => undefined, clock: systemClock, log, ...parts },
  );
  let caller: Caller | undefined;
  let admitted: Awaited<typeof admission>;
  const handler = handlerFor(schema, {
    first: [
      async (exchange, context) => {
        admitted = await admission;
        return admitted.authenticate!(exchange, context);
      },
    ],
    checked: [(asked) => admitted.enforceScopes!(asked)],
    contextOf: (exchange) => {
      caller = exchange.caller;
      return {};
    },
  });
  return {
    get caller() {
      return caller;
    },
    logged,
    ask: async (query, headers, operationName) => {
      const response = await handler.fetch('http://gateway.test/graphql', {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ query, operationName }),
      });
      return { status: response.status, ...((await response.json()) as Body) };
    },
  };
}
