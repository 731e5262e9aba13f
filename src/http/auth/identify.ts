import type { Caller } from './caller.ts';

/** What is taken. A header whose part is missing here is not looked at. */
export interface Credentials {
  readonly apiKeyOwner?: ((key: string) => Caller | undefined) | undefined;
  readonly bearerTokenOwner?: ((token: string) => Promise<Caller | undefined>) | undefined;
}

/** Who a request comes from. */
export type Identity =
  | { readonly kind: 'known'; readonly caller: Caller }
  | { readonly kind: 'nobody' }
  /** By the header that is wrong. */
  | { readonly kind: 'refused'; readonly header: 'x-api-key' | 'authorization' };

/**
 * Goes by the credentials in the headers. Of two, both have to be valid: to pass over a wrong one would hide from a
 * caller that a token has expired, and let the other credential answer for whoever sent it.
 */
export async function identify(
  headers: Headers,
  { apiKeyOwner, bearerTokenOwner }: Credentials,
): Promise<Identity> {
  const callers: Caller[] = [];
  const key = headers.get('x-api-key');
  if (apiKeyOwner && key !== null) {
    const caller = apiKeyOwner(key);
    if (!caller) return { kind: 'refused', header: 'x-api-key' };
    callers.push(caller);
  }
  const authorization = headers.get('authorization');
  if (bearerTokenOwner && authorization !== null) {
    const token = bearerToken(authorization);
    const caller = token === undefined ? undefined : await bearerTokenOwner(token);
    if (!caller) return { kind: 'refused', header: 'authorization' };
    callers.push(caller);
  }
  const [first, second] = callers;
  if (!first) return { kind: 'nobody' };
  return { kind: 'known', caller: second ? onBehalf(first, second) : first };
}

/** RFC 6750, 2.1; the name of a scheme may be written in small letters too (RFC 9110, 11.1). */
function bearerToken(authorization: string): string | undefined {
  return /^Bearer +([\w.~+/-]+=*)$/i.exec(authorization)?.[1];
}

/** A program that asks for somebody, such as a router, may do what both may: neither lends its rights to the other. */
function onBehalf(program: Caller, person: Caller): Caller {
  const scopes = [...program.scopes].filter((scope) => person.scopes.has(scope));
  return { name: program.name, scopes: new Set(scopes) };
}
