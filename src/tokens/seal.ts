import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

/** Encrypts what is kept at rest: AES-256-GCM with a random nonce for each text. */
export interface Sealer {
  seal(text: string): string;
  /** @throws KeyMissing, or another Error for the operator; neither contains the text */
  open(sealed: string): string;
}

/** The text was encrypted with a key that was not given. */
export class KeyMissing extends Error {
  override readonly name = 'KeyMissing';
}

const PLAIN = 'plain:';
const KIND = 'aes-256-gcm';

/** @param keys 32 bytes each, newest first. Without keys, texts are kept readable. */
export function createSealer(keys: readonly Uint8Array[]): Sealer {
  const ring = new Map(keys.map((key) => [idOf(key), key]));
  const [newest] = ring;
  return {
    seal: (text) => (newest ? encrypt(text, ...newest) : PLAIN + text),
    open: (sealed) => {
      if (sealed.startsWith(PLAIN)) return sealed.slice(PLAIN.length);
      const [kind, id = '', ...parts] = sealed.split(':');
      if (kind !== KIND || parts.length !== 3) throw new Error('the token store is damaged');
      const key = ring.get(id);
      if (!key) {
        throw new KeyMissing(
          `the tokens are encrypted with the key ${id}, ${newest ? 'which is not among the keys that are set' : 'and no key is set'}`,
        );
      }
      return decrypt(key, parts);
    },
  };
}

function encrypt(text: string, id: string, key: Uint8Array): string {
  const nonce = randomBytes(12);
  const cipher = createCipheriv(KIND, key, nonce, { authTagLength: 16 });
  const encrypted = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  const parts = [nonce, cipher.getAuthTag(), encrypted];
  return [KIND, id, ...parts.map((part) => part.toString('base64'))].join(':');
}

function decrypt(key: Uint8Array, parts: readonly string[]): string {
  const [nonce, tag, text] = parts.map((part) => Buffer.from(part, 'base64'));
  try {
    const decipher = createDecipheriv(KIND, key, nonce!, { authTagLength: 16 });
    decipher.setAuthTag(tag!);
    return Buffer.concat([decipher.update(text!), decipher.final()]).toString('utf8');
  } catch {
    throw new Error('the token store is damaged: its encrypted text was altered');
  }
}

/** Identifies a key without revealing it. */
function idOf(key: Uint8Array): string {
  return createHash('sha256').update('key id\0').update(key).digest('hex').slice(0, 8);
}
