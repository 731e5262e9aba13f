import cluster, { type Worker } from 'node:cluster';

/** Sent by Node with a connection for a worker to accept. */
interface ClusterMessage {
  readonly act?: string;
  readonly seq?: number;
  readonly ack?: number;
}

interface Handle {
  close(): void;
}

/**
 * Hands a connection that a worker has not accepted before it ended to another worker. The primary accepts connections
 * and passes them on, one at a time to each worker. Node forgets a connection that the worker has not confirmed, so its
 * client would wait forever, and Node does not report the end of the channel either. The connection has not been read
 * yet, because a worker confirms it before it reads.
 *
 * Node has no API for this. The messages are those of its `internal/cluster/round_robin_handle`.
 */
export function returnUnaccepted({ process: child }: Worker): void {
  const handed = new Map<number, Handle>();
  const { send } = child;
  child.send = (message: ClusterMessage, handle?: unknown, ...rest: unknown[]): boolean => {
    if (message.act === 'newconn') handed.set(message.seq!, handle as Handle);
    return Reflect.apply(send, child, [message, handle, ...rest]) as boolean;
  };
  child.on('internalMessage', ({ ack }: ClusterMessage) => void handed.delete(ack!));
  let isDisconnected = false;
  child.once('disconnect', () => (isDisconnected = true));
  child.once('close', () => {
    // On this event, Node no longer gives connections to the worker.
    if (!isDisconnected) child.emit('disconnect');
    const hasOthers = Object.values(cluster.workers!).some((worker) => worker!.isConnected());
    for (const [ack, handle] of handed) {
      // As if the worker had refused the connection: Node then gives it to another worker.
      if (hasOthers) child.emit('internalMessage' as 'message', { ...REFUSED, ack }, undefined);
      else handle.close();
    }
  });
}

const REFUSED = { cmd: 'NODE_CLUSTER', accepted: false };
