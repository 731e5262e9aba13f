import { z } from 'zod';

/** A text that matches the pattern. @param message follows the name of the variable */
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

/** One of these words. */
export function oneOf<const Words extends readonly string[]>(
  words: Words,
  fallback: Words[number],
) {
  const list = new Intl.ListFormat('en', { style: 'long', type: 'disjunction' }).format(words);
  return z.enum(words, `must be ${list}, for example ${fallback}`);
}

/** `true` or `false`. */
export function trueOrFalse() {
  return oneOf(['true', 'false'], 'true')
    .default('false')
    .transform((word) => word === 'true');
}

/** `on` or `off`; undefined if it is not set. */
export function onOrOff() {
  return oneOf(['on', 'off'], 'off')
    .transform((word) => word === 'on')
    .optional();
}

/** A list separated by commas. @param isValid what each entry must be */
export function listOf(isValid: (entry: string) => boolean, message: string) {
  return z
    .string()
    .transform((text): readonly string[] => text.split(',').map((entry) => entry.trim()))
    .refine((entries) => entries.every(isValid), message);
}

/** An address to which tokens are sent: https, or http on this machine. */
export function secureUrl() {
  return z
    .url({
      protocol: /^https?$/,
      abort: true,
      error: 'must be a complete URL, for example https://api.example.com',
    })
    .refine(isSecureUrl, 'must begin with https:// (http:// is allowed only for this machine)');
}

export function isSecureUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}

/** An address without a final slash, to which paths are appended. */
export function baseUrl() {
  return secureUrl()
    .refine((text) => {
      const { search, hash, username, password, pathname } = new URL(text);
      return !(search || hash || username || password || /\/graphql\/*$/.test(pathname));
    }, 'must be a plain base address: without user, query, fragment, or /graphql, which the gateway appends')
    .transform((text) => {
      const { origin, pathname } = new URL(text);
      return `${origin}${pathname}`.replace(/\/+$/, '');
    });
}

export function isOrigin(text: string): boolean {
  return /^https?:\/\//.test(text) && URL.canParse(text) && new URL(text).origin === text;
}

export function storeAddress(fallback: string) {
  return z
    .string()
    .default(fallback)
    .transform((text, context) => {
      const address = readStoreAddress(text);
      if (address) return address;
      context.addIssue(
        `must be sqlite:<file>, for example ${fallback}, or postgres://<user>:<password>@<host>/<database>`,
      );
      return z.NEVER;
    });
}

export type StoreAddress =
  | { readonly kind: 'sqlite'; readonly path: string }
  /** The URL holds a password. */
  | { readonly kind: 'postgres'; readonly url: string };

/** Returns undefined for a kind of store that is not supported. */
export function readStoreAddress(text: string): StoreAddress | undefined {
  const path = /^sqlite:(.+)$/.exec(text)?.[1];
  if (path !== undefined) return { kind: 'sqlite', path };
  const isPostgres = /^postgres(ql)?:\/\/[^/]+\/[^/?]/i.test(text) && URL.canParse(text);
  return isPostgres ? { kind: 'postgres', url: text } : undefined;
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
