import type { Plugin } from 'graphql-yoga';
import type { Logger } from 'pino';
import { cors } from './cors.ts';
import { crossSite } from './cross-site.ts';
import { gatewayHosts, isLoopback, type NamedServer } from './host-names.ts';
import { knownHosts } from './known-hosts.ts';

export interface FrontDoorSettings extends NamedServer {
  /** As browsers write them. */
  readonly corsOrigins: readonly string[];
  /** Undefined: callers are not asked who they are. */
  readonly auth: object | undefined;
}

/** Which names the gateway answers to, and which pages may ask it. */
export interface FrontDoor {
  readonly knownHosts: Plugin;
  readonly cors: Plugin;
  readonly crossSite: Plugin;
  /** Whether a request came by a name of ours: for what is answered before the plugins. */
  readonly isForUs: (request: Request) => boolean;
}

export function createFrontDoor(settings: FrontDoorSettings, log: Logger): FrontDoor {
  const { host, allowedHosts, corsOrigins } = settings;
  const asksWho = settings.auth !== undefined;
  if (!allowedHosts && !isLoopback(host) && !asksWho) log.warn(NOBODY_IS_ASKED);
  const hosts = knownHosts(gatewayHosts(settings, asksWho));
  return {
    knownHosts: hosts.plugin,
    isForUs: hosts.isForUs,
    cors: cors(corsOrigins),
    crossSite: crossSite(corsOrigins),
  };
}

const NOBODY_IS_ASKED =
  'HOST lets other machines in, and callers are not asked who they are: until ALLOWED_HOSTS names the hosts of this gateway, ' +
  'it answers to IP addresses and localhost alone, so that no web page can read it through a browser in your network.';
