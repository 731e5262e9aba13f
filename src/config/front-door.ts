import { z } from 'zod';
import { choice, count } from './values.ts';

/** Who may reach the gateway from where, and how much one operation may be. */
export interface FrontDoorSettings {
  /** Origins whose pages may read answers, as browsers write them. */
  readonly corsOrigins: readonly string[];
  /** Request headers that these pages may send beside those that the gateway knows, in lower case. */
  readonly corsHeaders: readonly string[];
  /** Names that the gateway answers to, in lower case and without a port; undefined: not said. */
  readonly allowedHosts: readonly string[] | undefined;
  /** Whether X-Forwarded-For is believed. */
  readonly trustProxy: boolean;
  readonly maxBodyBytes: number;
  readonly maxDepth: number;
  readonly maxAliases: number;
  readonly maxTokens: number;
  /** Upstream pages that one caller may cost in a minute; 0: no limit. */
  readonly pagesPerMinute: number;
  /** Path of a manifest of operations. */
  readonly trustedDocuments: string | undefined;
  /** Whether nothing but these is taken. */
  readonly trustedDocumentsOnly: boolean;
  /** How long requests are still taken after SIGTERM, ms. */
  readonly shutdownDelayMs: number;
}

const HOST = /^([a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*|\[[0-9a-f:.]+\])$/;

// RFC 9110, 5.6.2, but for the star, which would allow any header.
const HEADER = /^[a-z0-9!#$%&'+.^_`|~-]+$/;

export const frontDoorVariables = {
  CORS_ORIGINS: listOf(
    isOrigin,
    'must be origins with commas between, for example https://people.example.com (no path, no *)',
  ).optional(),
  CORS_HEADERS: z
    .string()
    .toLowerCase()
    .pipe(
      listOf(
        (text) => HEADER.test(text),
        'must be names of request headers with commas between, for example x-tenant,baggage (no *)',
      ),
    )
    .optional(),
  ALLOWED_HOSTS: z
    .string()
    .toLowerCase()
    .pipe(
      listOf(
        (text) => HOST.test(text),
        'must be host names with commas between, for example recruiting.example.com (no port, no *)',
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

export function toFrontDoor(given: z.output<typeof variables>): FrontDoorSettings {
  return {
    corsOrigins: given.CORS_ORIGINS ?? [],
    corsHeaders: given.CORS_HEADERS ?? [],
    allowedHosts: given.ALLOWED_HOSTS,
    trustProxy: given.TRUST_PROXY === 'true',
    maxBodyBytes: given.MAX_BODY_BYTES,
    maxDepth: given.MAX_DEPTH,
    maxAliases: given.MAX_ALIASES,
    maxTokens: given.MAX_TOKENS,
    pagesPerMinute: given.PAGES_PER_MINUTE,
    trustedDocuments: given.TRUSTED_DOCUMENTS,
    trustedDocumentsOnly: given.TRUSTED_DOCUMENTS_ONLY === 'true',
    shutdownDelayMs: given.SHUTDOWN_DELAY_MS,
  };
}

export function frontDoorContradictions(given: Readonly<Record<string, string>>): string[] {
  const mistakes: string[] = [];
  if (given['TRUSTED_DOCUMENTS_ONLY'] === 'true' && given['TRUSTED_DOCUMENTS'] === undefined) {
    mistakes.push(
      'TRUSTED_DOCUMENTS_ONLY=true takes nothing but the operations of TRUSTED_DOCUMENTS, which is not set: set it to the path of the manifest.',
    );
  }
  if (given['CORS_HEADERS'] !== undefined && given['CORS_ORIGINS'] === undefined) {
    mistakes.push(
      'CORS_HEADERS is what the pages of CORS_ORIGINS may send, which is not set: set it to their origins, or remove CORS_HEADERS.',
    );
  }
  return mistakes;
}

function listOf(isRight: (entry: string) => boolean, message: string) {
  return z
    .string()
    .transform((text) => text.split(',').map((entry) => entry.trim()))
    .refine((entries) => entries.every(isRight), message);
}

function isOrigin(text: string): boolean {
  return /^https?:\/\//.test(text) && URL.canParse(text) && new URL(text).origin === text;
}
