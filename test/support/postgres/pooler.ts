import { connect, createServer, type Socket } from 'node:net';
import { listening } from '../listening.ts';

export type Pooler = Awaited<ReturnType<typeof startPooler>>;

/** Ends what the server sends once a transaction is over (ReadyForQuery), and begins what a client sends at its end. */
const IDLE = 'Z\0\0\0\u0005I';
const TERMINATE = 'X';

/**
 * Starts a transaction pooler, like PgBouncer in its transaction mode: between transactions a client has no connection
 * of the server, and gets one for the next that another client may have had before. The driver sends a message only
 * once the one before it is answered, so that no message has to be taken apart.
 */
export async function startPooler(serverPort: number) {
  /** Connections of the server that are free, by the first message of a client, which has its user and database. */
  const free = new Map<string, Socket[]>();
  /** Whose transaction a connection of the server has. */
  const clients = new Map<Socket, Socket>();
  const sockets = new Set<Socket>();
  let fault: { when: 'before' | 'after' | 'never'; met: () => void } | undefined;
  const meets = (when: 'before' | 'after' | 'never') => {
    if (fault?.when !== when) return false;
    fault.met();
    fault = undefined;
    return true;
  };
  const keep = (socket: Socket) => {
    sockets.add(socket.setNoDelay(true).setEncoding('latin1'));
    return socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
  };

  const listener = createServer((client) => {
    let startup: string | undefined;
    let isStopped = false;
    let mine: Socket | undefined;
    const others = () => free.get(startup!) ?? [];
    /** Each client brings a connection, on which it logs in. */
    const open = (): Socket => {
      const server = keep(connect(serverPort, '127.0.0.1'));
      let end = '';
      server.on('data', (text: string) => {
        const owner = clients.get(server);
        end = (end + text).slice(-IDLE.length);
        if (text.includes('COMMIT\0') && meets('after')) return void owner?.destroy();
        owner?.write(text, 'latin1');
        if (end !== IDLE || !owner) return;
        clients.delete(server);
        free.set(startup!, [...others(), server]);
      });
      server.on('close', () => {
        clients.get(server)?.destroy();
        free.set(
          startup!,
          others().filter((each) => each !== server),
        );
      });
      return server;
    };
    keep(client).on('data', (text: string) => {
      if (startup !== undefined && text.startsWith(TERMINATE)) return void client.end();
      const isFirst = startup === undefined;
      startup ??= text;
      if (isFirst) mine = open();
      else if (!mine || clients.get(mine) !== client) mine = others().shift();
      if (!mine) return void client.destroy();
      clients.set(mine, client);
      const isCommit = text.includes('COMMIT\0');
      if (isCommit && meets('before')) return void client.destroy();
      if (isCommit && meets('never')) return void (isStopped = true);
      mine.write(text, 'latin1');
    });
    // In the middle of a transaction, the connection of the server is closed with that of the client. The driver of a
    // process that is stopped would not give up.
    client.on('close', () => {
      const isOpen = mine && clients.get(mine) === client;
      if (!isStopped) (isOpen ? mine : others().shift())?.destroy();
    });
  });
  const started = await listening(listener, '127.0.0.1');
  const next = (when: 'before' | 'after' | 'never') =>
    new Promise<void>((met) => void (fault = { when, met }));
  return {
    port: started.port,
    /** Cuts the client at its next COMMIT: before the server gets it, or after it has committed. Once. */
    cutAtCommit: (when: 'before' | 'after') => next(when),
    /** Keeps the next COMMIT, and the transaction open, as a client does that is stopped before it. Once. */
    stopAtCommit: () => next('never'),
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await started[Symbol.asyncDispose]();
    },
  };
}
