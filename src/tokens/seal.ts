import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { OperatorMistake } from '../errors.ts';
import { parseJson } from './pair.ts';
import { VERSION, type State } from './state.ts';

/** Encrypts the state where it is kept at rest: AES-256-GCM with a random nonce for each text. */
export interface Sealer {
  seal(state: State): string;
  /** @throws OperatorMistake if it was encrypted with a key that was not given; no error contains the text */
  open(sealed: string): State;
}

const PLAIN = 'plain:';
const KIND = 'aes-256-gcm';

/** @param keys 32 bytes each, newest first. Without keys, texts are kept readable. */
export function createSealer(keys: readonly Uint8Array[]): Sealer {
  const [newest] = keys;
  return {
    seal: (state) => {
      const text = JSON.stringify(state);
      return newest ? encrypt(text, newest) : PLAIN + text;
    },
    open: (sealed) => {
      const isPlain = sealed.startsWith(PLAIN);
      const state = parseJson(isPlain ? sealed.slice(PLAIN.length) : decrypt(sealed, keys));
      const version = (state as Partial<State> | null | undefined)?.version;
      if (version === VERSION) return state as State;
      throw new Error(
        typeof version === 'number'
          ? `the token store was written by another version of this program (document ${String(version)}, this one reads ${VERSION}): run that version`
          : DAMAGED,
      );
    },
  };
}

const DAMAGED = 'it is damaged';

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

function decrypt(sealed: string, keys: readonly Uint8Array[]): string {
  const [kind, ...parts] = sealed.split(':');
  if (kind !== KIND || parts.length !== 3) throw new Error(DAMAGED);
  const [nonce, tag, text] = parts.map((part) => Buffer.from(part, 'base64'));
  for (const key of keys) {
    try {
      const decipher = createDecipheriv(KIND, key, nonce!, { authTagLength: 16 });
      decipher.setAuthTag(tag!);
      return Buffer.concat([decipher.update(text!), decipher.final()]).toString('utf8');
    } catch {
      // It was encrypted with another key, or altered.
    }
  }
  const why =
    keys.length > 0
      ? 'with a key that is not among the keys that are set, or were altered'
      : 'and no key is set';
  throw new OperatorMistake(`the tokens are encrypted ${why}. ${SET_KEY}`);
}
