import type { OutgoingRequest, Outcome, Send, Sender } from '../../src/upstream/request.ts';
import { UpstreamAnswer } from '../../src/upstream/request.ts';

/** A request that was sent, and waits until a test answers it. */
export interface Held {
  readonly request: OutgoingRequest;
  readonly sender: Sender;
  end(outcome: Outcome): void;
}

/** The end of the way to the service: holds each request until a test answers it, or until its caller leaves. */
export function heldRequests() {
  const sent: Held[] = [];
  const send: Send = (request, sender) => {
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
    sender.signal.addEventListener('abort', () => reject(sender.signal.reason));
    sent.push({ request, sender, end: resolve });
    return promise;
  };
  return { sent, send, bodies: () => sent.map(({ request }) => request.body) };
}

export function query(body: string): OutgoingRequest {
  return { kind: 'query', body };
}

export function senderWith(sender: Partial<Sender> = {}): Sender {
  const { signal } = new AbortController();
  return { signal, priority: 'interactive', caller: 'somebody', cause: undefined, ...sender };
}

export function answer(text = '{"data":{}}'): UpstreamAnswer {
  return new UpstreamAnswer(200, Buffer.from(text), false);
}
