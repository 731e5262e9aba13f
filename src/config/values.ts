import { z } from 'zod';

/** @param message follows the name of the variable */
export function matching(pattern: RegExp, message: string) {
  return z.string().regex(pattern, message);
}

/** A whole number within bounds. */
export function count(min: number, max: number, fallback: number) {
  const message = `must be a whole number from ${min} to ${max}, for example ${fallback}`;
  return matching(/^\d{1,12}$/, message)
    .default(String(fallback))
    .transform(Number)
    .refine((value) => value >= min && value <= max, message);
}

/** The message for a value that is not allowed. */
export function choice(allowed: string, example: string) {
  return { error: `must be ${allowed}, for example ${example}` };
}

export function trueOrFalse() {
  return z.enum(['true', 'false'], choice('true or false', 'true'));
}

export function onOrOff(example: 'on' | 'off') {
  return z.enum(['on', 'off'], choice('on or off', example));
}

export function isOn(word: 'true' | 'false' | 'on' | 'off'): boolean {
  return word === 'true' || word === 'on';
}

/** An address without a final slash, to which paths are appended. */
export function baseUrl() {
  return secureUrl()
    .refine((url) => {
      const { search, hash, username, password } = new URL(url);
      return `${search}${hash}${username}${password}` === '';
    }, 'must be a plain base address, without user, query or fragment')
    .refine(
      (url) => !/\/graphql\/*$/.test(new URL(url).pathname),
      'must be the address without /graphql, which the gateway appends',
    )
    .transform((text) => {
      const { origin, pathname } = new URL(text);
      return `${origin}${pathname}`.replace(/\/+$/, '');
    });
}

/** Whether tokens may be sent to this address: https, or http on this machine. */
export function isSecureUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
}

/**
 * Explains that a token link belongs to another service: its refresh token would be sent to this one, and be spent or
 * revealed. Names only origins, because the link is secret.
 *
 * @param origin the origin of the token links, if it is not that of the service
 * @returns undefined if the link belongs to the service
 */
export function foreignLink(
  link: string,
  { recruitingUrl, origin }: { recruitingUrl: string; origin: string | undefined },
): string | undefined {
  const from = new URL(link).origin;
  if (from === new URL(recruitingUrl).origin || from === origin) return undefined;
  return (
    `is at ${from}, but RECRUITING_URL is ${recruitingUrl}, which would get its refresh token. ` +
    'Nothing was sent, and the link still works. Correct the link or RECRUITING_URL. If the service of RECRUITING_URL ' +
    `gives out its links at ${from}, set TOKEN_LINK_ORIGIN=${from}.`
  );
}

/** An address to which tokens are sent. */
export function secureUrl() {
  return z.string().superRefine((text, context) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (!url || !['http:', 'https:'].includes(url.protocol)) {
      context.addIssue({
        code: 'custom',
        message: 'must be a complete URL, for example https://api.example.com',
        continue: false,
      });
    } else if (!isSecureUrl(text)) {
      context.addIssue({
        code: 'custom',
        message: 'must begin with https:// (http:// is allowed only for this machine)',
        continue: false,
      });
    }
  });
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}

/** A comma-separated list. @param valid what each entry must be; by a pattern, entries are in lower case */
export function listOf(valid: RegExp | ((entry: string) => boolean), message: string) {
  const isPattern = valid instanceof RegExp;
  return z
    .string()
    .transform((text): readonly string[] =>
      (isPattern ? text.toLowerCase() : text).split(',').map((entry) => entry.trim()),
    )
    .refine((entries) => entries.every(isPattern ? (entry) => valid.test(entry) : valid), message);
}

export function storeAddress(fallback: string) {
  return z
    .string()
    .default(fallback)
    .transform((text, context) => {
      const address = readStoreAddress(text);
      if (address) return address;
      context.addIssue({
        code: 'custom',
        message: `must be sqlite:<file>, for example ${fallback}, or postgres://<user>:<password>@<host>/<database>`,
      });
      return z.NEVER;
    });
}

export type StoreAddress =
  | { readonly kind: 'sqlite'; readonly path: string }
  /** The URL holds a password. */
  | { readonly kind: 'postgres'; readonly url: string };

/** Returns undefined for a kind of store that is not supported. */
export function readStoreAddress(text: string): StoreAddress | undefined {
  const path = SQLITE.exec(text)?.groups?.['path'];
  if (path !== undefined) return { kind: 'sqlite', path };
  return POSTGRES.test(text) && URL.canParse(text) ? { kind: 'postgres', url: text } : undefined;
}

const SQLITE = /^sqlite:(?<path>.+)$/;
const POSTGRES = /^postgres(ql)?:\/\/[^/]+\/[^/?]/i;
