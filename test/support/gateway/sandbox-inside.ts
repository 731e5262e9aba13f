import { readConfig } from '../../../src/config.ts';
import type { Gateway } from '../../../src/gateway.ts';
import { thisMachine } from '../../../src/setup/machine.ts';
import { openGateway, openAccess, type Setup } from '../../../src/setup/open-gateway.ts';
import { recordingLog } from './recording-log.ts';

interface SandboxInside extends AsyncDisposable, Pick<Gateway, 'handler'> {
  fetch(path: string, init?: RequestInit): Promise<Response>;
}

/** A gateway without settings, which serves the sandbox inside, opened as `npm start` opens it. */
export async function startSandboxInside(): Promise<SandboxInside> {
  const parts = new AsyncDisposableStack();
  const setup: Setup = {
    config: readConfig({}, thisMachine.readFile),
    machine: thisMachine,
    log: recordingLog().log,
    closeAtEnd: (part) => parts.adopt(part, (each) => each.close()),
  };
  const { handler } = await openGateway(await openAccess(setup), setup);
  return {
    handler,
    fetch: async (path, init) => handler.fetch(new Request(`http://localhost${path}`, init)),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}
