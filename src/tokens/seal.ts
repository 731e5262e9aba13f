import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { OperatorMistake } from '../errors.ts';

/** Encrypts what is kept at rest: AES-256-GCM with a random nonce for each text. */
export interface Sealer {
  seal(text: string): string;
  /** @throws OperatorMistake if it was encrypted with a key that was not given; no error contains the text */
  open(sealed: string): string;
}

const PLAIN = 'plain:';
const KIND = 'aes-256-gcm';

/** @param keys 32 bytes each, newest first. Without keys, texts are kept readable. */
export function createSealer(keys: readonly Uint8Array[]): Sealer {
  const [newest] = keys;
  return {
    seal: (text) => (newest ? encrypt(text, newest) : PLAIN + text),
    open: (sealed) => {
      if (sealed.startsWith(PLAIN)) return sealed.slice(PLAIN.length);
      const [kind, ...parts] = sealed.split(':');
      if (kind !== KIND || parts.length !== 3) throw new Error('the token store is damaged');
      for (const key of keys) {
        const text = decrypt(key, parts);
        if (text !== undefined) return text;
      }
      const why = newest
        ? 'with a key that is not among the keys that are set, or were altered'
        : 'and no key is set';
      throw new OperatorMistake(`the tokens are encrypted ${why}. ${SET_KEY}`);
    },
  };
}

const SET_KEY =
  'It was left as it is. Set TOKEN_STORE_KEY (in a program: `keys`) as the other processes have it. While the key is being ' +
  'changed, that is both keys, the new one first.';

function encrypt(text: string, key: Uint8Array): string {
  const nonce = randomBytes(12);
  const cipher = createCipheriv(KIND, key, nonce, { authTagLength: 16 });
  const encrypted = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  const parts = [nonce, cipher.getAuthTag(), encrypted];
  return [KIND, ...parts.map((part) => part.toString('base64'))].join(':');
}

/** @returns undefined if it was encrypted with another key, or altered */
function decrypt(key: Uint8Array, parts: readonly string[]): string | undefined {
  const [nonce, tag, text] = parts.map((part) => Buffer.from(part, 'base64'));
  try {
    const decipher = createDecipheriv(KIND, key, nonce!, { authTagLength: 16 });
    decipher.setAuthTag(tag!);
    return Buffer.concat([decipher.update(text!), decipher.final()]).toString('utf8');
  } catch {
    return undefined;
  }
}
