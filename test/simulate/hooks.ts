/** Loaded before the simulator: gives the token code disks and random numbers of the simulator's own. */
import { registerHooks } from 'node:module';
import { LightAbortController } from './light-abort.ts';

const SIMULATED: Record<string, string> = {
  'node:fs': new URL('disks.ts', import.meta.url).href,
  'node:timers/promises': new URL('turns.ts', import.meta.url).href,
  'node:crypto': new URL('entropy.ts', import.meta.url).href,
};
const ITS_USERS = /\/(src\/(tokens\/|sync-folder\.|clock\.)|test\/support\/tokens\/)[^?]*$/;

Object.assign(globalThis, { AbortController: LightAbortController });

registerHooks({
  resolve: (specifier, context, next) => {
    const url = SIMULATED[specifier];
    const isUser = url !== undefined && ITS_USERS.test(context.parentURL ?? '');
    return isUser ? { url, shortCircuit: true } : next(specifier, context);
  },
});
