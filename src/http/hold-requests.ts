import type { RequestMemory } from '../memory/byte-limit.ts';
import { rateLimited, type Exchange, type Reply, type Stage } from './exchange.ts';
import { isProbe } from './paths.ts';

/**
 * Counts the heads of requests, and refuses requests for which there is no memory. A probe is answered all the same:
 * unless it waits behind other requests of its connection, its memory is free at once.
 */
export function holdRequests(memory: RequestMemory): Stage {
  return (exchange) => {
    if (exchange.hold(exchange.headBytes, memory)) return undefined;
    if (isProbe(exchange.path) && !exchange.isBehindOthers) return undefined;
    exchange.dropHead();
    // What remains of a refused request is in memory until the caller has read the refusal.
    if (memory.isFarExceeded) exchange.hangUp();
    return noMemory(exchange, memory);
  };
}

/** The reply to a request for which there is no memory. Its connection ends, because nobody reads the rest of it. */
export function noMemory(exchange: Exchange, memory: RequestMemory): Reply {
  const reply = rateLimited(exchange, 429, memory.refusal());
  return { ...reply, headers: { ...reply.headers, connection: 'close' } };
}

/**
 * Estimates the memory of a parsed JSON value, bytes. Objects with other keys than the one before take most, so all are
 * counted like these.
 *
 * @param countsTexts whether strings count; not if the value has them in common with one that was counted
 */
export function bytesOf(value: unknown, { countsTexts = true } = {}): number {
  let bytes = 0;
  // Not recursive: a value of a megabyte may have half a million levels.
  const left = [value];
  while (left.length > 0) {
    const one = left.pop();
    if (typeof one === 'string') bytes += countsTexts ? STRING + lengthOf(one) : 0;
    else if (typeof one === 'number') bytes += NUMBER;
    else if (Array.isArray(one)) {
      bytes += ARRAY + SLOT * one.length;
      for (const item of one) left.push(item);
    } else if (typeof one === 'object' && one !== null) {
      bytes += OBJECT;
      for (const key in one) {
        bytes += MEMBER + key.length;
        left.push((one as Record<string, unknown>)[key]);
      }
    }
  }
  return bytes;
}

/** Bytes, as V8 of Node 24 uses them. */
const STRING = 24;
const NUMBER = 16;
const ARRAY = 32;
const SLOT = 8;
const OBJECT = 64;
const MEMBER = 64;

function lengthOf(text: string): number {
  // Exact enough: such a text takes one byte for each character, or two.
  return text.length < 64 ? 2 * text.length : Buffer.byteLength(text);
}
