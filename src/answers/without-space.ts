import { STEP, type Pausable } from '../pausable.ts';
import { scanString } from './scan-leaf.ts';

/** Removes white space, except between two values: `1 2` must not become a number. */
export function* withoutSpace(bytes: Buffer): Pausable<Buffer> {
  let size = 0;
  let out: Buffer | undefined;
  let from = 0;
  let pauseAt = STEP;
  for (let at = 0; at < bytes.length; at += 1) {
    if (at > pauseAt) {
      pauseAt = at + STEP;
      yield;
    }
    const byte = bytes[at]!;
    if (byte === 34) {
      const end = scanString(bytes, at);
      if (end < 0) return bytes;
      at = end - 1;
      continue;
    }
    if (!isSpace(byte)) continue;
    let end = at + 1;
    while (isSpace(bytes[end]!)) end += 1;
    if (isMark(bytes[at - 1]) || isMark(bytes[end])) {
      out ??= Buffer.allocUnsafeSlow(bytes.length);
      size += bytes.copy(out, size, from, at);
      from = end;
    }
    at = end - 1;
  }
  if (!out) return bytes;
  size += bytes.copy(out, size, from);
  // A copy, because records may be kept for long, and indented JSON is twice as large.
  const compact = Buffer.allocUnsafeSlow(size);
  out.copy(compact, 0, 0, size);
  return compact;
}

function isSpace(byte: number): boolean {
  return byte === 32 || byte === 10 || byte === 13 || byte === 9;
}

/** Whether it is one of `[ ] { } : ,` or an end of the text. */
function isMark(byte: number | undefined): boolean {
  return (
    byte === 44 ||
    byte === 58 ||
    byte === 123 ||
    byte === 125 ||
    byte === 91 ||
    byte === 93 ||
    byte === undefined
  );
}
