import type { Pausable } from '../pausable.ts';
import { scanInAnyForm, type AnswerScan } from './scan-any-form.ts';
import { matches } from './scan-leaf.ts';
import { scanner } from './scan.ts';
import { objectShape, type FieldShape, type Shape } from './shape.ts';
import type { Tape } from './tape.ts';

/**
 * Makes a function that takes an answer without errors as bytes: `data` with this shape, and `extensions` and an empty
 * `errors` before or behind it. The tape knows where both are. The function returns undefined for an answer that has to be read in general.
 */
export function envelopeScanner<T>({
  shape,
  scan: scanData,
  take,
}: AnswerScan<T>): (bytes: Buffer) => Pausable<T | undefined> {
  return scanInAnyForm({ shape: objectShape(OF, [member('data', shape), EXTENSIONS]), scan, take });

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

const EXTENSIONS = member('extensions', { kind: 'any', nullable: true, type: '' });
const scanAnything = scanner(EXTENSIONS.shape as Shape);
const DATA_KEY = Buffer.from('"data":');
const EXTENSIONS_KEY = Buffer.from('"extensions":');
/** How services write that there are none: the specification asks to leave the key out (section 7.1). */
const NO_ERRORS = [Buffer.from('"errors":null'), Buffer.from('"errors":[]')];
