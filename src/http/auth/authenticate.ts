import type { Plugin } from 'graphql-yoga';
import type { Caller } from './caller.ts';
import { identify, type Credentials } from './identify.ts';
import { unauthenticated } from './unauthenticated.ts';

export interface Authentication {
  /** Turns away who is not known, before any of the body is read. What plugins before it answer is open to everybody. */
  readonly plugin: Plugin;
  /** Of a request that was let in. */
  readonly callerOf: (request: Request) => Caller | undefined;
}

export function authenticate(credentials: Credentials): Authentication {
  const callers = new WeakMap<Request, Caller>();
  return {
    callerOf: (request) => callers.get(request),
    plugin: {
      async onRequest({ request, fetchAPI, endResponse }) {
        const identity = await identify(request.headers, credentials);
        if (identity.kind === 'known') callers.set(request, identity.caller);
        else endResponse(unauthenticated(identity, { request, fetchAPI, credentials }));
      },
      onResponse({ request, response }) {
        // A cache on the way keeps no answer to Authorization (RFC 9111, 3.5), but it does not know x-api-key.
        if (callers.has(request)) response.headers.set('cache-control', 'private, no-store');
      },
    },
  };
}
