import type { Logger } from 'pino';
import type { Stage } from '../exchange/exchange.ts';
import { cors, type CorsSettings } from './cors.ts';
import { crossSite } from './cross-site.ts';
import { gatewayHosts, isLoopback, type NamedServer } from './host-names.ts';
import { knownHosts } from './known-hosts.ts';
import { findPayer } from './payer.ts';

export interface OriginSettings extends NamedServer, CorsSettings {
  /** Undefined: callers are not asked who they are. */
  readonly auth: object | undefined;
  readonly trustProxy: boolean;
}

/** Where requests may come from: by which names of the gateway, from which pages, and from which address. */
export interface Origin {
  readonly corsHeaders: Stage;
  readonly knownHosts: Stage;
  readonly preflights: Stage;
  readonly crossSite: Stage;
  readonly findPayer: Stage;
}

export function createOrigin(settings: OriginSettings, log: Logger): Origin {
  const { host, allowedHosts, corsOrigins, trustProxy } = settings;
  const asksWho = settings.auth !== undefined;
  if (!allowedHosts && !isLoopback(host) && !asksWho) log.warn(NOBODY_IS_ASKED);
  const { corsHeaders, preflights } = cors(settings, log);
  return {
    corsHeaders,
    knownHosts: knownHosts(gatewayHosts(settings, asksWho)),
    preflights,
    crossSite: crossSite(corsOrigins),
    findPayer: findPayer(trustProxy),
  };
}

const NOBODY_IS_ASKED =
  'HOST lets other machines in, and callers are not asked who they are: until ALLOWED_HOSTS names the hosts of this gateway, ' +
  'it answers to IP addresses and localhost alone, so that no web page can read it through a browser in your network.';
