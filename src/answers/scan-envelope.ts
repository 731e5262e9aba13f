import { STEP, type Pausable } from '../pausable.ts';
import { matches, scanString } from './scan-leaf.ts';
import { scanner } from './scan.ts';
import type { FieldShape, Shape } from './shape.ts';
import { PAUSED, Tape, type Scan } from './tape.ts';

/** How the bytes of an answer become a value. */
export interface AnswerScan<T> {
  readonly scan: Scan;
  /** Makes the value of an answer that was scanned. Returns undefined if it has to be read in general all the same. */
  readonly take: (bytes: Buffer, tape: Tape) => Pausable<T | undefined>;
}

/**
 * Makes a function that takes an answer without errors as bytes: `data`, which `scan` scans, and `extensions` and an
 * empty `errors` before or behind it. The tape knows where both are. The function returns undefined for an answer that
 * has to be read in general.
 */
export function envelopeScanner<T>({
  scan: scanData,
  take,
}: AnswerScan<T>): (bytes: Buffer) => Pausable<T | undefined> {
  return scanSpaced({ scan, take });

  function scan(bytes: Uint8Array, at: number, tape: Tape): number {
    if (bytes[at] !== 123) return -1;
    let end = at;
    // Only data pause.
    let isPaused = tape.places.length > 0;
    do {
      const start = end + 1;
      if (isPaused || (tape.dataAt < 0 && matches(bytes, start, DATA_KEY))) {
        if (!isPaused) tape.dataAt = start + DATA_KEY.length;
        isPaused = false;
        end = scanData(bytes, tape.dataAt, tape);
      } else if (tape.extensionsAt < 0 && matches(bytes, start, EXTENSIONS_KEY)) {
        tape.extensionsAt = start + EXTENSIONS_KEY.length;
        end = scanAnything(bytes, tape.extensionsAt, tape);
        tape.extensionsEnd = end;
      } else {
        const none = NO_ERRORS.find((written) => matches(bytes, start, written));
        if (!none) return -1;
        end = start + none.length;
      }
      if (end < 0) return end;
    } while (bytes[end] === 44);
    return bytes[end] === 125 && tape.dataAt >= 0 ? end + 1 : -1;
  }
}

/** The shape of an object that is part of every answer. */
export const OF = { nullable: false, type: '' };

/** A field of such an object. */
export function member(key: string, shape: Shape): FieldShape {
  return { key, shape, isSilent: false };
}

const scanAnything = scanner({ kind: 'any', nullable: true, type: '' });
const DATA_KEY = Buffer.from('"data":');
const EXTENSIONS_KEY = Buffer.from('"extensions":');
/** How services write that there are none: the specification asks to leave the key out (section 7.1). */
const NO_ERRORS = [Buffer.from('"errors":null'), Buffer.from('"errors":[]')];

/**
 * Makes a function that scans an answer as it came and, if that fails, without its white space: scanners take none, and
 * a service that indents its JSON need not be read value by value.
 */
export function scanSpaced<T>({
  scan,
  take,
}: AnswerScan<T>): (bytes: Buffer) => Pausable<T | undefined> {
  // For answers that are scanned without a pause, so that no other answer can use it meanwhile.
  const shared = new Tape();
  return function* scanned(bytes) {
    const found = yield* scanAs(bytes);
    if (found !== undefined) return found;
    const compact = yield* withoutSpace(bytes);
    return compact === bytes ? undefined : yield* scanAs(compact);
  };

  function* scanAs(bytes: Buffer): Pausable<T | undefined> {
    const tape = bytes.length > STEP ? new Tape() : shared;
    tape.reset();
    let end = scan(bytes, 0, tape);
    while (end === PAUSED) {
      yield;
      tape.pauseAt += STEP;
      end = scan(bytes, 0, tape);
    }
    return end === bytes.length ? yield* take(bytes, tape) : undefined;
  }
}

/** Removes white space, except between two values: `1 2` must not become a number. */
function* withoutSpace(bytes: Buffer): Pausable<Buffer> {
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
    if (MARKS.has(bytes[at - 1]) || MARKS.has(bytes[end])) {
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

/** `[ ] { } : ,` and the ends of the text. */
const MARKS: ReadonlySet<number | undefined> = new Set([...Buffer.from('[]{}:,'), undefined]);
