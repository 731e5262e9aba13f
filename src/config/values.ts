import * as v from 'valibot';

/**
 * Gives a variable its row in docs/reference.md.
 *
 * @param fallback describes a default that depends on something
 */
export function setting<Variable extends v.GenericSchema>(
  variable: Variable,
  description: string,
  fallback?: string,
) {
  return v.pipe(variable, v.metadata({ description, fallback }));
}

/** A text that matches the pattern. @param message follows the name of the variable */
export function matching(pattern: RegExp, message: string) {
  return v.pipe(v.string(), v.regex(pattern, message));
}

/** A whole number within bounds. */
export function count(min: number, max: number, fallback: number) {
  const message = `must be a whole number from ${min} to ${max}, for example ${fallback}`;
  return v.pipe(
    v.optional(matching(/^\d{1,12}$/, message), String(fallback)),
    v.transform(Number),
    v.minValue(min, message),
    v.maxValue(max, message),
  );
}

/** One of these words. */
export function oneOf<const Words extends readonly string[]>(
  words: Words,
  fallback: Words[number],
) {
  return v.picklist(words, `must be one of ${words.join(', ')}, for example ${fallback}`);
}

/** `true` or `false`. */
export function trueOrFalse() {
  return v.pipe(
    v.optional(oneOf(['true', 'false'], 'true'), 'false'),
    v.transform((word) => word === 'true'),
  );
}

/** `on` or `off`; undefined if it is not set. */
export function onOrOff() {
  return v.optional(
    v.pipe(
      oneOf(['on', 'off'], 'off'),
      v.transform((word) => word === 'on'),
    ),
  );
}

/** A list separated by commas. @param isValid what each entry must be */
export function listOf(isValid: (entry: string) => boolean, message: string) {
  return v.pipe(
    v.string(),
    v.transform((text): readonly string[] => text.split(',').map((entry) => entry.trim())),
    v.check((entries) => entries.every(isValid), message),
  );
}

/** An address to which tokens are sent: https, or http on this machine. */
export function secureUrl() {
  return v.pipe(
    v.string(),
    v.trim(),
    v.check(
      isSecureUrl,
      'must be a complete URL that begins with https:// (http:// is allowed only for this machine)',
    ),
  );
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
  return v.pipe(
    secureUrl(),
    v.check((text) => {
      const { href, origin, pathname } = new URL(text);
      return href === `${origin}${pathname}` && !/\/graphql\/*$/.test(pathname);
    }, 'must be a plain base address: without user, query, fragment, or /graphql, which the gateway appends'),
    v.transform((text) => {
      const { origin, pathname } = new URL(text);
      return `${origin}${pathname}`.replace(/\/+$/, '');
    }),
  );
}

export function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text;
}

export function storeAddress(fallback: string) {
  return v.pipe(
    v.optional(v.string(), fallback),
    v.rawTransform(({ dataset, addIssue, NEVER }) => {
      const address = readStoreAddress(dataset.value);
      if (address) return address;
      addIssue({
        message: `must be sqlite:<file>, for example ${fallback}, or postgres://<user>:<password>@<host>/<database>`,
      });
      return NEVER;
    }),
  );
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
  if (from === (origin ?? new URL(recruitingUrl).origin)) return undefined;
  return (
    `is at ${from}, but RECRUITING_URL is ${recruitingUrl}, which would get its refresh token. ` +
    'Nothing was sent, and the link still works. Correct the link or RECRUITING_URL. If the service of RECRUITING_URL ' +
    `gives out its links at ${from}, set TOKEN_LINK_ORIGIN=${from}.`
  );
}
