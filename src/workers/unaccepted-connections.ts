import cluster, { type Worker } from 'node:cluster';

/** What Node sends to a worker with a connection that it is to accept. */
interface ClusterMessage {
  readonly act?: string;
  readonly seq?: number;
  readonly ack?: number;
}

interface Handle {
  close(): void;
}

/**
 * Gives the connection that a worker has not accepted when it ends to another one. The primary accepts connections and
 * hands them to its workers, one at a time to each. Node forgets the one that a worker has not confirmed before it ended,
 * so that its client waits for ever; it does not report the end of the channel either. Nothing of that connection was
 * read yet, because a worker confirms it before it reads.
 *
 * Node has no interface for this. The messages are those of its `internal/cluster/round_robin_handle`.
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
    // Then Node removes it from those that may get a connection.
    if (!isDisconnected) child.emit('disconnect');
    const hasOthers = Object.values(cluster.workers!).some((worker) => worker!.isConnected());
    for (const [ack, handle] of handed) {
      // As if the worker had refused it: then Node gives it to another one.
      if (hasOthers) child.emit('internalMessage' as 'message', { ...REFUSED, ack }, undefined);
      else handle.close();
    }
  });
}

const REFUSED = { cmd: 'NODE_CLUSTER', accepted: false };
