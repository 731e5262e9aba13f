import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createSealer, SealError } from '../../../src/tokens/store/seal.ts';

const [OLD, NEW] = [randomBytes(32), randomBytes(32)];
const TEXT = 'a secret: ü 😀';

describe('a sealed text', () => {
  test('a sealed text can only be opened with its key, in its own place', () => {
    const sealed = createSealer([NEW]).seal(TEXT, 'here');
    expect(sealed).not.toContain('secret');
    expect(createSealer([OLD, NEW]).open(sealed, 'here')).toBe(TEXT);
    expect(() => createSealer([NEW]).open(sealed, 'there')).toThrow(SealError);
    expect(() => createSealer([OLD]).open(sealed, 'here')).toThrow(/none of those/);
    expect(() => createSealer([]).open(sealed, 'here')).toThrow(/not set/);
  });

  test('a text is sealed differently each time', () => {
    const sealer = createSealer([NEW]);
    expect(sealer.seal(TEXT, 'here')).not.toBe(sealer.seal(TEXT, 'here'));
  });

  test('a sealed text is refused if any part of it was changed or removed', () => {
    const sealer = createSealer([NEW]);
    const sealed = sealer.seal(TEXT, 'here');
    const [kind, id, nonce, tag, text] = sealed.split(':') as [
      string,
      string,
      string,
      string,
      string,
    ];
    const shortTag = Buffer.from(tag, 'base64').subarray(0, 4).toString('base64');
    for (const changed of [
      [kind, id, flipped(nonce), tag, text],
      [kind, id, nonce, flipped(tag), text],
      [kind, id, nonce, shortTag, text],
      [kind, id, nonce, tag, flipped(text)],
      [kind, id, nonce, tag, ''],
      [kind, id, nonce, tag],
      ['other', id, nonce, tag, text],
    ]) {
      expect(() => sealer.open(changed.join(':'), 'here')).toThrow(SealError);
    }
  });

  test('a sealed text is current only under the newest key', () => {
    const sealed = createSealer([OLD]).seal(TEXT, 'here');
    expect(createSealer([OLD]).isCurrent(sealed)).toBe(true);
    expect(createSealer([NEW, OLD]).isCurrent(sealed)).toBe(false);
    expect(createSealer([]).isCurrent(sealed)).toBe(false);
  });
});

test('without a key a text is kept as it is, and can still be read after a key was added', () => {
  const kept = createSealer([]).seal(TEXT, 'here');
  expect(createSealer([NEW]).open(kept, 'here')).toBe(TEXT);
  expect(createSealer([]).isCurrent(kept)).toBe(true);
  expect(createSealer([NEW]).isCurrent(kept)).toBe(false);
});

test('the message about a text that cannot be opened contains neither the text nor the key', () => {
  const sealed = createSealer([NEW]).seal(TEXT, 'here');
  for (const keys of [[], [OLD]]) {
    const open = () => createSealer(keys).open(sealed, 'here');
    expect(open).not.toThrow(/secret/);
    expect(open).not.toThrow(NEW.toString('hex'));
  }
});

function flipped(part: string): string {
  const bytes = Buffer.from(part, 'base64');
  bytes[0]! ^= 1;
  return bytes.toString('base64');
}
