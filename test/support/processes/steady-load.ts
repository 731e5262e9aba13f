import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';

/** Short enough that a gateway always has requests, and long enough to leave it time for other work. */
const PAUSE_MS = 25;

/** Clients, each with a kept connection of its own, who send requests with hardly a pause. */
export interface SteadyLoad {
  /** Resolves when every client has received this many further answers, all to requests sent after this call. */
  answered(each: number): Promise<void>;
  /** Ends the clients. Returns everything that went wrong. */
  end(): Promise<string[]>;
}

export function startSteadyLoad(origin: string, clients = 8): SteadyLoad {
  const problems: string[] = [];
  const lookers = new Set<() => void>();
  /** Requests that each client has sent and has been answered. */
  const progress = Array.from({ length: clients }, () => ({ sent: 0, answered: 0 }));
  const state = { goesOn: true };
  const ask = async (pool: Pool, query: string) => {
    let began = false;
    try {
      const { statusCode, body } = await pool.request({
        method: 'POST',
        path: '/graphql',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ query }),
      });
      began = true;
      const answer = (await body.json()) as { data?: { persons?: { items: unknown[] } } };
      if (statusCode === 200 && answer.data?.persons?.items.length === 3) return;
      problems.push(`a wrong answer (${statusCode}): ${JSON.stringify(answer)}`);
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      problems.push(`${code ?? message} ${began ? 'in' : 'before'} an answer`);
      state.goesOn &&= code === undefined || !code.startsWith('ECONN');
    }
  };
  const ended = Promise.all(
    progress.map(async (counts, client) => {
      const pool = new Pool(origin, { connections: 1, pipelining: 1 });
      while (state.goesOn) {
        counts.sent += 1;
        // Equal queries would share one request to the service.
        const label = `of${client}n${counts.sent}`;
        await ask(pool, `{ persons(first: 3) { items { id ${label}: id } } }`);
        counts.answered += 1;
        for (const look of lookers) look();
        await delay(PAUSE_MS);
      }
      await pool.destroy();
    }),
  );
  return {
    answered: (each) => {
      const enough = progress.map(({ sent }) => sent + each);
      return new Promise((resolve) => {
        const look = () => {
          if (progress.some(({ answered }, client) => answered < enough[client]!)) return;
          lookers.delete(look);
          resolve();
        };
        lookers.add(look);
        look();
      });
    },
    end: async () => {
      state.goesOn = false;
      await ended;
      return problems;
    },
  };
}
