import * as v from 'valibot';

/*
 * How one setting is read. The description, and a default that depends on something (`fallback`), are for the table in
 * docs/reference.md. A message follows the name of the setting.
 */

/** A setting without a default. */
export function optional<Value extends v.GenericSchema<string, unknown>>(
  value: Value,
  description: string,
  fallback?: string,
) {
  return v.pipe(v.optional(value), v.metadata({ description, fallback }));
}

/** A setting that has a default. */
export function preset<Value extends v.GenericSchema<string, unknown>>(
  value: Value,
  byDefault: string,
  description: string,
  fallback?: string,
) {
  return v.pipe(v.optional(value, byDefault), v.metadata({ description, fallback }));
}

/** A whole number within bounds. */
export function count(
  [min, max]: readonly [min: number, max: number],
  byDefault: number,
  description: string,
  fallback?: string,
) {
  const isCount = (text: string) =>
    /^\d{1,13}$/.test(text) && Number(text) >= min && Number(text) <= max;
  const message = `must be a whole number from ${min} to ${max}, for example ${byDefault}`;
  return v.pipe(
    preset(v.pipe(v.string(), v.check(isCount, message)), String(byDefault), description, fallback),
    v.transform(Number),
  );
}

/** `true` or `false`, which is the default. */
export function flag(description: string) {
  const word = oneOf(['true', 'false'], 'true');
  return v.pipe(
    preset(word, 'false', description),
    v.transform((text) => text === 'true'),
  );
}

/** `on` or `off`. Undefined if it is not set: on, in production off. */
export function onOrOff(description: string) {
  const word = v.pipe(
    oneOf(['on', 'off'], 'off'),
    v.transform((text) => text === 'on'),
  );
  return optional(word, description, '`on`, in production `off`');
}

/** One of these words. */
export function oneOf<const Words extends readonly string[]>(words: Words, example: Words[number]) {
  const message = `must be one of ${words.join(', ')}, for example ${example}`;
  // With the type of a text as its input, the compiled types of a setting with a default are valid.
  return v.pipe(v.string(), v.picklist(words, message));
}

/** A text that matches the pattern. */
export function matching(pattern: RegExp, message: string) {
  return v.pipe(v.string(), v.regex(pattern, message));
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
    v.check(
      isSecureUrl,
      'must be a complete URL that begins with https:// (http:// is allowed only for this machine)',
    ),
  );
}

export function isSecureUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  const isLoopback = /^(localhost|\[::1\]|127(\.\d+){3})$/.test(hostname);
  return protocol === 'https:' || (protocol === 'http:' && isLoopback);
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

/** What is typed before a command: in this repository, where npm runs the right Node, or with the installed package. */
export const COMMAND_LINE = import.meta.url.endsWith('.ts')
  ? 'npm start --'
  : 'npx recruiting-subgraph';
