import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

/**
 * Encrypts data at rest: AES-256-GCM with a random nonce for each text and a tag of 16 bytes. `about` is authenticated, so
 * that a sealed text cannot be moved to another place.
 */
export interface Sealer {
  seal(text: string, about: string): string;
  /** @throws SealError */
  open(sealed: string, about: string): string;
  /** Whether it is sealed with the newest key, or is plain if there is no key. */
  isCurrent(sealed: string): boolean;
}

/** Values for `about`. `pair` and `ring` are used by layout 1. */
export const contexts = {
  store: 'token store',
  pair: ({ name, baseUrl }: { name: string; baseUrl: string }, generation: number) =>
    `${name}|${baseUrl}|${generation}|pair`,
  file: (kind: string, { set, generation }: { set: string; generation: number }) =>
    `${set}|${generation}|${kind}`,
  ring: 'fingerprint key',
};

/** The message never contains any of the text. */
export class SealError extends Error {
  override name = 'SealError';
  /** Whether the text was altered; otherwise its key is missing. */
  readonly isAltered: boolean;
  constructor(message: string, isAltered = false) {
    super(message);
    this.isAltered = isAltered;
  }
}

const PLAIN = 'plain:';
const SEALED = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** @param keys 32 bytes each, newest first; without keys, texts stay readable and get the prefix `plain:` */
export function createSealer(keys: readonly Uint8Array[]): Sealer {
  const ring = keys.map((key) => ({ key, id: idOf(key) }));
  const [newest] = ring;
  return {
    seal: (text, about) => (newest ? encrypt(newest, text, about) : PLAIN + text),
    open: (sealed, about) => {
      if (sealed.startsWith(PLAIN)) return sealed.slice(PLAIN.length);
      const [kind, id, nonce, tag, text] = sealed.split(':');
      if (kind !== SEALED || text === undefined) {
        throw new SealError('it holds no sealed tokens', true);
      }
      const sealedWith = ring.find((candidate) => candidate.id === id);
      if (!sealedWith) throw new SealError(missingKey(id!, ring.length));
      return decrypt(sealedWith.key, { nonce: nonce!, tag: tag!, text }, about);
    },
    isCurrent: (sealed) =>
      newest ? sealed.startsWith(`${SEALED}:${newest.id}:`) : sealed.startsWith(PLAIN),
  };
}

/** @param about one of `contexts` */
export function sealJson(value: unknown, about: string, sealer: Sealer): string {
  return sealer.seal(JSON.stringify(value), about);
}

/** @param about the context that it was sealed with @throws SealError */
export function openJson(sealed: string, about: string, sealer: Sealer): unknown {
  const text = sealer.open(sealed, about);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // The message of the parser quotes the text.
    throw new SealError('its tokens were altered', true);
  }
}

function encrypt(
  { key, id }: { key: Uint8Array; id: string },
  text: string,
  about: string,
): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(about));
  const encrypted = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return [SEALED, id, ...[nonce, cipher.getAuthTag(), encrypted].map(base64)].join(':');
}

function decrypt(
  key: Uint8Array,
  sealed: { nonce: string; tag: string; text: string },
  about: string,
): string {
  try {
    const nonce = Buffer.from(sealed.nonce, 'base64');
    const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(about));
    decipher.setAuthTag(Buffer.from(sealed.tag, 'base64'));
    const parts = [decipher.update(Buffer.from(sealed.text, 'base64')), decipher.final()];
    return Buffer.concat(parts).toString('utf8');
  } catch {
    throw new SealError('its sealed tokens were altered, or belong to another place', true);
  }
}

function missingKey(id: string, keys: number): string {
  return keys === 0
    ? `its tokens are encrypted (with the key ${id}), and TOKEN_STORE_KEY is not set`
    : `its tokens are encrypted with the key ${id}, which is none of those in TOKEN_STORE_KEY`;
}

/** Identifies a key without revealing it. */
function idOf(key: Uint8Array): string {
  return createHash('sha256').update('key id\0').update(key).digest('hex').slice(0, 8);
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64');
}
