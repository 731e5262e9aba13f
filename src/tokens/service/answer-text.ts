import {
  brotliDecompressSync,
  constants,
  gunzipSync,
  inflateRawSync,
  inflateSync,
  zstdDecompressSync,
} from 'node:zlib';
import { readGrant, type Grant, type RawAnswer } from '../token-set.ts';

/**
 * The JSON object at the beginning of an answer's body, in any encoding, and with anything after it.
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

/** A pair that is named anywhere in an answer. It may be an example until the service accepts one of its tokens. */
export function pairNamedIn(answer: RawAnswer): Grant | undefined {
  const whole = readGrant(objectIn(answer));
  if (isPair(whole)) return whole;
  for (const text of textsOf(answer)) {
    const value = (name: string) => namedIn(text, name);
    const named = readGrant({
      access_token: value('access_token'),
      refresh_token: value('refresh_token'),
      expires_in: value('expires_in'),
      refresh_token_expires_in: value('refresh_token_expires_in'),
    });
    if (isPair(named)) return named;
  }
  return undefined;
}

/** A larger body is not a token set. */
export const MAX_BODY_BYTES = 64 * 1024;

function isPair(grant: Grant | undefined): grant is Grant {
  return grant?.accessToken !== undefined && grant.refreshToken !== undefined;
}

/** White space, and what keeps a browser from running JSON as a script. */
const GUARD = /^\s*(?:\)\]\}'?,?)?\s*/;

/** Decoded as its header claims, as received (proxies decode and leave the header), and as it looks. */
function* textsOf({ body, contentEncoding }: RawAnswer): Iterable<string> {
  const codings = (contentEncoding ?? '').toLowerCase().split(',');
  const claimed = unpacked(body, codings.map((coding) => coding.trim()).filter(Boolean));
  if (claimed) yield textOf(claimed);
  if (claimed !== body) yield textOf(body);
  const looks = LOOKS.find(([magic]) => magic.every((byte, at) => body[at] === byte));
  const guessed = looks && unpacked(body, [looks[1]]);
  if (guessed) yield textOf(guessed);
}

const LOOKS: readonly (readonly [readonly number[], string])[] = [
  [[0x1f, 0x8b], 'gzip'],
  [[0x28, 0xb5, 0x2f, 0xfd], 'zstd'],
];

type Unpack = (bytes: Uint8Array) => Uint8Array;

// Truncated data is decompressed as far as possible.
const cut = { maxOutputLength: MAX_BODY_BYTES, finishFlush: constants.Z_SYNC_FLUSH };
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

/** The position after the brace that closes the first one. */
function endOfObject(text: string): number | undefined {
  let depth = 0;
  let isQuoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const is = text[at];
    if (isQuoted && is === '\\') at += 1;
    else if (is === '"') isQuoted = !isQuoted;
    else if (!isQuoted && is === '{') depth += 1;
    else if (!isQuoted && is === '}') depth -= 1;
    if (depth === 0) return is === '}' ? at + 1 : undefined;
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
