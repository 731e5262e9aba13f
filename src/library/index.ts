import type { IncomingMessage, ServerResponse } from 'node:http';
import process from 'node:process';
import type { ExecutionRequest, ExecutionResult } from '@graphql-tools/utils';
import type { GraphQLSchema } from 'graphql';
import type { Logger } from 'pino';
import { systemClock } from '../clock.ts';
import { readConfig, type Setting, type SettingName } from '../config.ts';
import { checkGatewayConfig, defineConfig, type GatewayConfig } from '../config/gateway-config.ts';
import { OperatorMistake } from '../errors.ts';
import { createLog, withoutDetails } from '../telemetry/log.ts';
import { openExecutor, openGateway, type Setup } from '../setup/open-gateway.ts';

export { defineConfig, type GatewayConfig };

/**
 * The settings of docs/reference.md by their names, as they are written in an environment. Of the environment itself only
 * HTTPS_PROXY and NO_PROXY are read.
 */
export type Settings = { readonly [Name in SettingName]?: Setting };

export interface ExecutorOptions {
  readonly settings: Settings;
  /** Default: JSON lines on the standard error, of warnings and errors unless LOG_LEVEL is set. */
  readonly log?: Logger | undefined;
}

export interface GatewayOptions extends ExecutorOptions {
  /** What gateway.config.ts exports. Default: nothing is added. */
  readonly config?: GatewayConfig | undefined;
}

export interface Gateway {
  /** Answers `/graphql`, `/health` and `/ready`. A stream has to be read or cancelled. */
  fetch(...request: Parameters<typeof fetch>): Promise<Response>;
  /** The same for `node:http`, and for routes of frameworks like Express. */
  handler(request: IncomingMessage, response: ServerResponse): void;
  /** What callers see, with what `config` adds. */
  readonly schema: GraphQLSchema;
  /**
   * Executes operations of this schema for the program itself, with the budget of one caller and without a credential.
   * Never rejects: a failure is a result with errors. `@stream` is answered whole.
   */
  readonly executor: (request: ExecutionRequest) => Promise<ExecutionResult>;
  /** Saves the token pair of a running refresh, and closes everything. Call it when no more requests arrive. */
  close(): Promise<void>;
}

/**
 * Opens a gateway in this process: the token store, the files and the connections that its settings name.
 *
 * @throws Error with a message for the operator, such as every mistake in the settings
 */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  await using opening = new AsyncDisposableStack();
  const setup = await setUp(options, opening, 'gateway');
  const { config = {} } = options;
  // Plugins that are left out may be those that check callers.
  if (!options.config && setup.config.gatewayConfig !== undefined) {
    throw new OperatorMistake(
      'GATEWAY_CONFIG is read by the command, and not by a program. Import the file that it names, and pass what the file exports as config.',
    );
  }
  const added = checkGatewayConfig(config, 'config');
  const gateway = await openGateway({ ...setup, added });
  const parts = opening.move();
  return {
    fetch: (...request) => gateway.handler.fetch(...request),
    handler: (request, response) => gateway.handler(request, response),
    schema: gateway.offered.schema,
    executor: gateway.executor,
    close: () => parts.disposeAsync(),
  };
}

export interface ServiceExecutor {
  /**
   * Sends a request to the service with a managed access token, as the `executor` of `wrapSchema` or of a subschema. A
   * failure is a result with an error that has a code.
   */
  readonly executor: (request: ExecutionRequest) => Promise<ExecutionResult>;
  /** Saves the token pair of a running refresh, and closes everything. Call it when no more requests arrive. */
  close(): Promise<void>;
}

/**
 * Opens only the executor with managed tokens, for a gateway of another kind. It does not need settings for callers:
 * the program may do everything that the tokens allow.
 *
 * @throws Error with a message for the operator, such as every mistake in the settings
 */
export async function createExecutor(options: ExecutorOptions): Promise<ServiceExecutor> {
  await using opening = new AsyncDisposableStack();
  const setup = await setUp(options, opening, 'executor');
  const { execute } = await openExecutor(setup);
  const parts = opening.move();
  return { executor: execute, close: () => parts.disposeAsync() };
}

/** Reads the settings, and opens the log. */
async function setUp(
  { settings, log: programLog }: ExecutorOptions,
  parts: AsyncDisposableStack,
  purpose: 'gateway' | 'executor',
): Promise<Setup> {
  const config = readConfig(settings, purpose);
  // The standard output belongs to the program.
  const log = programLog
    ? withoutDetails(programLog)
    : await createLog({
        level: settings.LOG_LEVEL ? config.logLevel : 'warn',
        isJson: true,
        destination: process.stderr,
      });
  return { config, env: process.env, clock: systemClock, log, parts };
}
