import { join } from 'node:path';
import { end, messageOf, start, tell, temporaryFolder } from './child-processes.ts';
import type { ServiceOptions } from '../test/service/service.ts';
import type { SandboxAddress, SandboxCommand, SandboxState } from './processes/sandbox-process.ts';
import type {
  UpstreamCommand,
  UpstreamOptions,
  UpstreamState,
} from './processes/upstream-process.ts';

/** A service that a gateway can be started in front of. */
export interface Service extends SandboxAddress {
  /** Of /graphql. */
  readonly endpoint: string;
  /** A valid access token, to send requests without a gateway. */
  readonly token: string;
  /** The token store of the next gateway in front of it. */
  tokenStore(): string;
}

export interface BenchSandbox extends Service, AsyncDisposable {
  tell(command: SandboxCommand): Promise<SandboxState>;
}

export interface Upstream extends Service, AsyncDisposable {
  readonly pid: number;
  tell(command: UpstreamCommand): Promise<UpstreamState>;
}

/** The sandbox in a process of its own, whose persons can be changed by commands. */
export async function startBenchSandbox(options: ServiceOptions): Promise<BenchSandbox> {
  const service = await startService<SandboxState>('processes/sandbox-process.ts', options);
  // All gateways in front of it share a store, because the token link works only for the first one.
  const store = service.tokenStore();
  return { ...service, tokenStore: () => store };
}

/** A service whose answers cost almost nothing, because they are prepared. */
export async function startUpstream(options: UpstreamOptions): Promise<Upstream> {
  return await startService<UpstreamState>('processes/upstream-process.ts', options);
}

async function startService<State>(file: string, options: object) {
  const child = start(file, { args: [JSON.stringify(options)] });
  const address = (await messageOf(child)) as SandboxAddress;
  const set = (await (await fetch(address.tokenLink)).json()) as { access_token: string };
  return {
    ...address,
    endpoint: `${address.url}/graphql`,
    pid: child.pid!,
    token: set.access_token,
    tokenStore: () => `sqlite:${join(temporaryFolder(), 'tokens.db')}`,
    tell: async (command: object) => (await tell(child, command)) as State,
    [Symbol.asyncDispose]: () => end(child),
  };
}
