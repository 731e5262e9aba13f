import { join } from 'node:path';
import { end, messageOf, start, tell, temporaryFolder } from './child-processes.ts';
import type {
  UpstreamAddress,
  UpstreamCommand,
  UpstreamOptions,
  UpstreamState,
} from './processes/upstream-process.ts';

/** A service that a gateway can be started in front of. */
export interface Service extends UpstreamAddress {
  /** Of /graphql. */
  readonly endpoint: string;
  /** A valid access token, to send requests without a gateway. */
  readonly token: string;
  /** The token store of the next gateway in front of it. */
  tokenStore(): string;
}

export interface Upstream extends Service, AsyncDisposable {
  readonly pid: number;
  tell(command: UpstreamCommand): Promise<UpstreamState>;
}

/** A service whose answers cost almost nothing, because they are prepared. */
export async function startUpstream(options: UpstreamOptions): Promise<Upstream> {
  const child = start('processes/upstream-process.ts', { args: [JSON.stringify(options)] });
  const address = (await messageOf(child)) as UpstreamAddress;
  const set = (await (await fetch(address.tokenLink)).json()) as { access_token: string };
  return {
    ...address,
    endpoint: `${address.url}/graphql`,
    pid: child.pid!,
    token: set.access_token,
    tokenStore: () => `sqlite:${join(temporaryFolder(), 'tokens.db')}`,
    tell: async (command) => (await tell(child, command)) as UpstreamState,
    [Symbol.asyncDispose]: () => end(child),
  };
}
