import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../clock.ts';

/** How long a client may take nothing of what is written for it. */
export const STALL_MS = 60_000;

const LOOK_MS = 10_000;

/**
 * Ends the connections whose clients have stopped reading, so that neither a walk nor its pages are held for them.
 * One that waits for an answer which is not there yet is no such client.
 *
 * @param answering the responses under way, at any time
 * @returns ends the looking
 */
export function endStalled(answering: ReadonlySet<ServerResponse>, clock: Clock): () => void {
  const over = new AbortController();
  const seen = new WeakMap<Socket, { unread: number; written: number; since: number }>();

  const look = ({ req: { socket } }: ServerResponse) => {
    const unread = unreadOf(socket);
    const written = socket.bytesWritten;
    const before = seen.get(socket);
    const hasMoved = before?.unread !== unread || before.written !== written;
    if (!before || hasMoved || unread === 0) {
      seen.set(socket, { unread, written, since: clock.elapsed() });
    } else if (clock.elapsed() - before.since >= STALL_MS) {
      socket.destroy();
    }
  };

  const goOn = async () => {
    for (;;) {
      await clock.sleep(LOOK_MS, over.signal);
      for (const response of answering) look(response);
    }
  };
  goOn().catch((error: unknown) => {
    if (!over.signal.aborted) throw error;
  });
  return () => over.abort();
}

/**
 * What was written and has not left. A large answer is one write, of which `writableLength` tells only when all of
 * it is gone, so this asks for what Node's own `setTimeout` of a socket goes by.
 */
function unreadOf(socket: Socket): number {
  const { _handle: handle } = socket as { _handle?: { writeQueueSize?: number } | null };
  return handle?.writeQueueSize ?? socket.writableLength;
}
