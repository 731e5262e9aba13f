import { jsonIn, MAX_LEVELS, withoutSpace, type Json } from '../json.ts';
import { atOnce, type Pausable } from '../pausable.ts';
import { notGraphQL, unusable } from '../upstream/read-answer.ts';
import type { Answer, OutgoingRequest, Sender } from '../upstream/request.ts';
import type { SendToService } from '../upstream/upstream.ts';

/** A request to the service, and how its answer is read. */
export interface ReadRequest<T> extends OutgoingRequest, AnswerReader<T> {}

interface AnswerReader<T> {
  /** Distinguishes requests with the same body whose answers are read in different ways. */
  readonly key: string;
  /** Returns undefined for an answer that only `read` can take. Default: `read` takes all. */
  readonly scan?: ((bytes: Buffer) => Pausable<T | undefined>) | undefined;
  /** @param answer an object with `data`, or a list of `errors`, or both */
  readonly read: (answer: Json, status: number) => Pausable<T>;
}

/** `scanned`: by the scanner, because the answer has the expected form; `general`: value by value, which costs more. */
export type ReadAs = 'scanned' | 'general';

/**
 * Sends a request, and returns what its reader made of the answer. All who send the same request at the same time share
 * that: it must not be changed.
 *
 * @throws what `SendToService` does
 */
export type Execute = <T>(request: ReadRequest<T>, sender: Sender) => Promise<T>;

/** @param onRead called for each answer that was read */
export function executeWith(send: SendToService, onRead: (how: ReadAs) => void): Execute {
  return async <T>(request: ReadRequest<T>, sender: Sender) => {
    const answer = await send(request, sender);
    return answer.once(request.key, () => {
      const { reading, readAs } = read(answer, request);
      onRead(readAs);
      return reading;
    });
  };
}

function read<T>({ bytes: sent, status }: Answer, request: AnswerReader<T>) {
  let bytes = sent;
  if (status === 200 && request.scan) {
    let reading = atOnce(request.scan(bytes));
    if (reading === undefined) {
      // A service that indents its JSON need not be read value by value.
      const compact = atOnce(withoutSpace(bytes));
      if (compact !== bytes) reading = atOnce(request.scan((bytes = compact)));
    }
    if (reading !== undefined) return { reading, readAs: 'scanned' as const };
  }
  const json = atOnce(jsonIn(bytes));
  if (json === 'too deep')
    throw unusable(`it is nested more than ${MAX_LEVELS} levels deep.`).error;
  if (!json) throw notGraphQL(status).error;
  return { reading: atOnce(request.read(json, status)), readAs: 'general' as const };
}
