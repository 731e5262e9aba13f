import { z } from 'zod';
import { choice, count } from './values.ts';

const HOST = /^([a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*|\[[0-9a-f:.]+\])$/;

// RFC 9110, 5.6.2, without the star, which would allow every header.
const HEADER = /^[a-z0-9!#$%&'+.^_`|~-]+$/;

export const frontDoorVariables = {
  CORS_ORIGINS: listOf(
    isOrigin,
    'must be origins separated by commas, for example https://people.example.com (no path, no *)',
  ).optional(),
  CORS_HEADERS: z
    .string()
    .toLowerCase()
    .pipe(
      listOf(
        (text) => HEADER.test(text),
        'must be names of request headers separated by commas, for example x-tenant,baggage (no *)',
      ),
    )
    .optional(),
  ALLOWED_HOSTS: z
    .string()
    .toLowerCase()
    .pipe(
      listOf(
        (text) => HOST.test(text),
        'must be host names separated by commas, for example recruiting.example.com (no port, no *)',
      ),
    )
    .optional(),
  TRUST_PROXY: z.enum(['true', 'false'], choice('true or false', 'true')).default('false'),
  MAX_BODY_BYTES: count(1, 100_000_000, 1_048_576),
  MAX_DEPTH: count(1, 1_000, 15),
  MAX_ALIASES: count(0, 100_000, 30),
  MAX_TOKENS: count(1, 1_000_000, 2_000),
  PAGES_PER_MINUTE: count(0, 100_000_000, 6_000),
  TRUSTED_DOCUMENTS: z.string().optional(),
  TRUSTED_DOCUMENTS_ONLY: z
    .enum(['true', 'false'], choice('true or false', 'true'))
    .default('false'),
  SHUTDOWN_DELAY_MS: count(0, 600_000, 0),
};

const variables = z.object(frontDoorVariables);

/** From where callers may reach the gateway, and the limits of one operation. */
export function toFrontDoor(given: z.output<typeof variables>) {
  return {
    /** The origins whose pages may read answers, as browsers write them. */
    corsOrigins: given.CORS_ORIGINS ?? [],
    /** Request headers that these pages may send besides those that the gateway uses, in lower case. */
    corsHeaders: given.CORS_HEADERS ?? [],
    /** The host names of the gateway, in lower case and without ports; undefined: not set. */
    allowedHosts: given.ALLOWED_HOSTS,
    /** Whether X-Forwarded-For is trusted. */
    trustProxy: given.TRUST_PROXY === 'true',
    maxBodyBytes: given.MAX_BODY_BYTES,
    maxDepth: given.MAX_DEPTH,
    maxAliases: given.MAX_ALIASES,
    maxTokens: given.MAX_TOKENS,
    /** The budget of one caller: upstream pages in a minute; 0: no limit. */
    pagesPerMinute: given.PAGES_PER_MINUTE,
    /** The path of the manifest of trusted documents. */
    trustedDocuments: given.TRUSTED_DOCUMENTS,
    /** Whether all other operations are refused. */
    trustedDocumentsOnly: given.TRUSTED_DOCUMENTS_ONLY === 'true',
    /** The time for which requests are still accepted after SIGTERM, ms. */
    shutdownDelayMs: given.SHUTDOWN_DELAY_MS,
  };
}

export function frontDoorContradictions(given: Readonly<Record<string, string>>): string[] {
  const mistakes: string[] = [];
  if (given['TRUSTED_DOCUMENTS_ONLY'] === 'true' && given['TRUSTED_DOCUMENTS'] === undefined) {
    mistakes.push(
      'TRUSTED_DOCUMENTS_ONLY=true accepts only the operations of TRUSTED_DOCUMENTS, which is not set. Set it to the path of the manifest.',
    );
  }
  if (given['CORS_HEADERS'] !== undefined && given['CORS_ORIGINS'] === undefined) {
    mistakes.push(
      'CORS_HEADERS applies only to pages of CORS_ORIGINS, which is not set. Set CORS_ORIGINS, or remove CORS_HEADERS.',
    );
  }
  return mistakes;
}

function listOf(isValid: (entry: string) => boolean, message: string) {
  return z
    .string()
    .transform((text): readonly string[] => text.split(',').map((entry) => entry.trim()))
    .refine((entries) => entries.every(isValid), message);
}

function isOrigin(text: string): boolean {
  return /^https?:\/\//.test(text) && URL.canParse(text) && new URL(text).origin === text;
}
