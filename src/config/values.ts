import { z } from 'zod';

/** A whole number within bounds. */
export function count(min: number, max: number, fallback: number) {
  const message = `must be a whole number from ${min} to ${max}, for example ${fallback}`;
  return z
    .string()
    .regex(/^\d{1,12}$/, message)
    .transform(Number)
    .refine((value) => value >= min && value <= max, message)
    .default(fallback);
}

/** The message for a value that is not allowed. */
export function choice(allowed: string, example: string) {
  return { error: `must be ${allowed}, for example ${example}` };
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

/** A comma-separated list. */
export function listOf(isValid: (entry: string) => boolean, message: string) {
  return z
    .string()
    .transform((text): readonly string[] => text.split(',').map((entry) => entry.trim()))
    .refine((entries) => entries.every(isValid), message);
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
