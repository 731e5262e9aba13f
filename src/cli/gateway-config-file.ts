import { existsSync } from 'node:fs';
import { createRequire, registerHooks } from 'node:module';
import { extname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { inspect } from 'node:util';
import type { Config } from '../config.ts';
import { checkGatewayConfig, type CheckedConfig } from '../config/gateway-config.ts';
import { OperatorMistake } from '../errors.ts';

/**
 * Loads and checks the file that GATEWAY_CONFIG names, or else gateway.config.ts in the working directory. The file is
 * code that runs beside the tokens, so in production it is loaded only if GATEWAY_CONFIG names it.
 *
 * @returns undefined if there is none
 * @throws OperatorMistake
 */
export async function loadGatewayConfig({
  gatewayConfig,
  production,
}: Pick<Config, 'gatewayConfig' | 'production'>): Promise<CheckedConfig | undefined> {
  const file = gatewayConfig ?? (!production && existsSync(USUAL) ? USUAL : undefined);
  if (file === undefined) return undefined;
  const { default: exported } = await imported(file);
  return checkGatewayConfig(exported, file);
}

const USUAL = 'gateway.config.ts';

/** @throws OperatorMistake */
async function imported(file: string): Promise<{ readonly default?: unknown }> {
  try {
    shareModules();
    return (await import(pathToFileURL(resolve(file)).href)) as { readonly default?: unknown };
  } catch (error) {
    // Its stack names the file and the line; its causes may be the reason.
    throw new OperatorMistake(
      `${file} cannot be loaded. Correct the file, what it imports, or GATEWAY_CONFIG. Node strips types, and nothing else of TypeScript.\n${inspect(error)}`,
    );
  }
}

/**
 * Makes all modules that are loaded from now on use the gateway's copy of `graphql`, because graphql-js refuses schemas
 * of another copy. Also lets the file import the gateway where that is not installed.
 */
function shareModules(): void {
  registerHooks({
    resolve: (specifier, context, next) => {
      if (specifier === OURS) return { url: LIBRARY, shortCircuit: true };
      if (SHARED.test(specifier) && context.parentURL !== import.meta.url) {
        return { url: pathToFileURL(resolveHere(specifier)).href, shortCircuit: true };
      }
      return next(specifier, context);
    },
  });
}

const SHARED = /^graphql(\/|$)/;
/** As required by this file. */
const { resolve: resolveHere } = createRequire(import.meta.url);

const OURS = 'recruiting-subgraph';
/** A checkout has it as TypeScript, the packed package as JavaScript. */
const LIBRARY = new URL(`../library/index${extname(import.meta.filename)}`, import.meta.url).href;
