import { onTestFinished } from 'vitest';
import { startServe } from '../support/processes/process.ts';
import type { Operator } from './tokens-operator.ts';

/** Starts a gateway on an operator's store, in a process of its own. */
export async function startGatewayOf({ env }: Operator, more: Record<string, string> = {}) {
  const gateway = await startServe({ env: { ...env, ALLOW_ANONYMOUS: 'true', ...more } });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return gateway;
}
