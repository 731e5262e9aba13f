import type { Logger } from 'pino';
import { systemClock } from '../clock.ts';
import type { Config } from '../config.ts';
import type { PageLedger } from '../page-ledger.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { openRescue, type Rescue } from '../tokens/store/rescue.ts';
import { openSqliteStore } from '../tokens/store/sqlite/sqlite-store.ts';
import type { TokenStore } from '../tokens/store/token-store.ts';
import type { Machine } from './machine.ts';
import { openStore, rescueFolder } from './token-store.ts';

/** What a gateway needs of the service, or of a sandbox in its place. */
export interface UpstreamParts {
  readonly settings: { readonly recruitingUrl: string; readonly tokenLink: string | undefined };
  readonly store: TokenStore;
  readonly rescue?: Rescue;
  /** Shared by replicas; undefined if there are none, because the store is of this machine. */
  readonly ledger?: PageLedger | undefined;
}

/** Closes a part at the end. */
export type Own = <T extends { close(): Promise<void> }>(part: T) => T;

/** The service that is configured, with its token store; otherwise a sandbox. */
export async function openUpstream(
  config: Config,
  { owner }: Machine,
  log: Logger,
  own: Own,
): Promise<UpstreamParts> {
  const { recruitingUrl, tokenLink, tokenStore, pagesPerMinute } = config;
  if (recruitingUrl === undefined) return sandboxInside(own);
  const store = own(openStore(tokenStore, config));
  return {
    settings: { recruitingUrl, tokenLink },
    store,
    ledger: store.ledger?.({ perMinute: pagesPerMinute, clock: systemClock, log }),
    rescue: own(openRescue(rescueFolder(config, owner), log)),
  };
}

/** Starts a sandbox. Its tokens stay in memory, so that they cannot mix with real ones. */
async function sandboxInside(own: Own): Promise<UpstreamParts> {
  // Loaded only here: a gateway in front of a service does not need it.
  const { startSandbox } = await import('../sandbox/sandbox.ts');
  const { url, tokenLink } = own<Sandbox>(await startSandbox());
  return {
    settings: { recruitingUrl: url, tokenLink },
    store: own(openSqliteStore(':memory:')),
  };
}
