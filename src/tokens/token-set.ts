import {
  brotliDecompressSync,
  constants,
  gunzipSync,
  inflateRawSync,
  inflateSync,
  zstdDecompressSync,
} from 'node:zlib';

/** An access token, and the single-use refresh token that can be exchanged for the next pair. */
export interface TokenPair {
  readonly accessToken: string;
  readonly refreshToken: string;
  /** Seconds from the refresh that gave this pair. */
  readonly expiresIn: number;
  /** Seconds from the refresh that gave this pair. */
  readonly refreshTokenExpiresIn: number;
  /** Name given in the personal account, if the answer has it. */
  readonly name: string | null;
}

/** The parts of a pair that an answer contains. Implausible lifetimes are left out. */
export interface Grant {
  readonly accessToken: string | undefined;
  readonly refreshToken: string | undefined;
  readonly expiresIn: number | undefined;
  readonly refreshTokenExpiresIn: number | undefined;
  readonly name: string | null;
}

type WholeGrant = Grant & Pick<TokenPair, 'accessToken' | 'refreshToken'>;

/** An answer of the token endpoint, as received. */
export interface RawAnswer {
  /** 0 when the answer was not HTTP. */
  readonly status: number;
  readonly contentEncoding: string | undefined;
  readonly body: Buffer;
}

/** A larger body is not a token set. */
export const LARGEST_TOKEN_SET_BYTES = 64 * 1024;

export const A_DAY = 86_400;
export const A_HUNDRED_AND_TWENTY_DAYS = 10_368_000;

/**
 * Reads the JSON of a refresh (interface, 2.1). Undefined if it does not contain a token.
 *
 * One non-empty token string is enough: the refresh token that was sent is spent, so the new one is kept even if
 * something else, such as `expires_in`, is odd.
 */
export function readGrant(document: unknown): Grant | undefined {
  if (typeof document !== 'object' || document === null) return undefined;
  const set = document as Record<string, unknown>;
  const accessToken = token(set['access_token']);
  const refreshToken = token(set['refresh_token']);
  if (accessToken === undefined && refreshToken === undefined) return undefined;
  return {
    accessToken,
    refreshToken,
    expiresIn: lifetime(set['expires_in']),
    refreshTokenExpiresIn: refreshLifetime(set['refresh_token_expires_in']),
    name: typeof set['name'] === 'string' ? set['name'] : null,
  };
}

/** Reads the JSON of a token link (interface, 2.1). Undefined when it is not a whole token set. */
export function readTokenSet(document: unknown): TokenPair | undefined {
  const grant = readGrant(document);
  if (!isWhole(grant)) return undefined;
  const { expiresIn = A_DAY, refreshTokenExpiresIn = A_HUNDRED_AND_TWENTY_DAYS } = grant;
  return { ...grant, expiresIn, refreshTokenExpiresIn };
}

/** Whether it has both tokens. */
export function isWhole(grant: Grant | undefined): grant is WholeGrant {
  return grant?.accessToken !== undefined && grant.refreshToken !== undefined;
}

function token(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined;
}

function lifetime(seconds: unknown): number | undefined {
  // With a life of less than a second, it would be refreshed endlessly.
  return typeof seconds === 'number' && Number.isFinite(seconds) && seconds >= 1
    ? seconds
    : undefined;
}

/**
 * The shortest plausible life of a refresh token, seconds: it has to outlast a restart. A smaller number is a mistake,
 * or in another unit. Following it would mean refreshing all the time, or giving up a refresh token that works.
 */
const SHORTEST_REFRESH_LIFE_S = 600;

function refreshLifetime(seconds: unknown): number | undefined {
  const life = lifetime(seconds);
  return life !== undefined && life >= SHORTEST_REFRESH_LIFE_S ? life : undefined;
}

/**
 * Reads the JSON object at the beginning of an answer's body, in any encoding, whatever follows it.
 *
 * When an answer arrives, the refresh token is spent, so this reads what a stricter reader would reject: compression that
 * was not requested, UTF-16, a byte order mark, a line that a proxy appended. It does not search: a pair further inside a
 * document may be an example in a manual.
 */
export function objectIn(answer: RawAnswer): Record<string, unknown> | undefined {
  for (const text of textsOf(answer)) {
    const object = firstObject(text.replace(GUARD, ''));
    if (object) return object;
  }
  return undefined;
}

/** Finds a pair anywhere in an answer. It may be an example until the service accepts one of its tokens. */
export function pairNamedIn(answer: RawAnswer): WholeGrant | undefined {
  const whole = readGrant(objectIn(answer));
  if (isWhole(whole)) return whole;
  for (const text of textsOf(answer)) {
    const value = (name: string) => namedIn(text, name);
    const named = readGrant({
      access_token: value('access_token'),
      refresh_token: value('refresh_token'),
      expires_in: value('expires_in'),
      refresh_token_expires_in: value('refresh_token_expires_in'),
    });
    if (isWhole(named)) return named;
  }
  return undefined;
}

/** White space, and the prefix that keeps a browser from running JSON as a script. */
const GUARD = /^\s*(?:\)\]\}'?,?)?\s*/;

/** The body decoded as its header says, as received (proxies decode and keep the header), and by its magic number. */
function* textsOf({ body, contentEncoding }: RawAnswer): Iterable<string> {
  const codings = (contentEncoding ?? '').toLowerCase().split(',');
  const declared = unpacked(body, codings.map((coding) => coding.trim()).filter(Boolean));
  if (declared) yield textOf(declared);
  if (declared !== body) yield textOf(body);
  const format = MAGIC_NUMBERS.find(([magic]) => magic.every((byte, at) => body[at] === byte));
  const guessed = format && unpacked(body, [format[1]]);
  if (guessed) yield textOf(guessed);
}

const MAGIC_NUMBERS: readonly (readonly [readonly number[], string])[] = [
  [[0x1f, 0x8b], 'gzip'],
  [[0x28, 0xb5, 0x2f, 0xfd], 'zstd'],
];

type Unpack = (bytes: Uint8Array) => Uint8Array;

// Truncated data is decompressed as far as possible.
const cut = { maxOutputLength: LARGEST_TOKEN_SET_BYTES, finishFlush: constants.Z_SYNC_FLUSH };
const gunzip: Unpack = (bytes) => gunzipSync(bytes, cut);
const CODINGS: Readonly<Record<string, readonly Unpack[]>> = {
  gzip: [gunzip],
  'x-gzip': [gunzip],
  // Servers use both formats under this name.
  deflate: [(bytes) => inflateSync(bytes, cut), (bytes) => inflateRawSync(bytes, cut)],
  br: [
    (bytes) =>
      brotliDecompressSync(bytes, { ...cut, finishFlush: constants.BROTLI_OPERATION_FLUSH }),
  ],
  zstd: [(bytes) => zstdDecompressSync(bytes, { ...cut, finishFlush: constants.ZSTD_e_flush })],
  identity: [(bytes) => bytes],
};

/** Undefined if it cannot be decompressed, or is larger than any token set. */
function unpacked(body: Uint8Array, codings: readonly string[]): Uint8Array | undefined {
  return codings.reduceRight<Uint8Array | undefined>((bytes, coding) => {
    for (const unpack of (bytes && CODINGS[coding]) ?? []) {
      try {
        return unpack(bytes!);
      } catch {
        // Try the next format.
      }
    }
    return undefined;
  }, body);
}

/** UTF-8, or UTF-16 if the first character has a zero byte (RFC 4627, section 3). Removes a byte order mark. */
function textOf(bytes: Uint8Array): string {
  const [first, second] = bytes;
  if ((first === 0xff && second === 0xfe) || (first !== 0 && second === 0)) {
    return new TextDecoder('utf-16le').decode(bytes);
  }
  if ((first === 0xfe && second === 0xff) || (first === 0 && second !== 0)) {
    return new TextDecoder('utf-16be').decode(bytes);
  }
  return new TextDecoder().decode(bytes);
}

function firstObject(text: string): Record<string, unknown> | undefined {
  const end = endOfObject(text);
  try {
    return end === undefined
      ? undefined
      : (JSON.parse(text.slice(0, end)) as Record<string, unknown>);
  } catch {
    return undefined;
  }
}

/** The index after the brace that closes the first one. */
function endOfObject(text: string): number | undefined {
  let depth = 0;
  let isQuoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (isQuoted && character === '\\') at += 1;
    else if (character === '"') isQuoted = !isQuoted;
    else if (!isQuoted && character === '{') depth += 1;
    else if (!isQuoted && character === '}') depth -= 1;
    if (depth === 0) return character === '}' ? at + 1 : undefined;
  }
  return undefined;
}

/** The value of a name in a form, or in JSON at any depth. The end of the JSON may be missing, but not that of the value. */
function namedIn(text: string, name: string): string | number | undefined {
  const json = new RegExp(`"${name}"\\s*:\\s*("(?:[^"\\\\]|\\\\.)*"|\\d+(?=\\D))`).exec(text)?.[1];
  if (json === undefined) return new URLSearchParams(text.trim()).get(name) ?? undefined;
  try {
    return JSON.parse(json) as string | number;
  } catch {
    return undefined;
  }
}
