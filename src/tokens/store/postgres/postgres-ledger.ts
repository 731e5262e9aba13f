import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import type { Clock } from '../../../clock.ts';
import type { PageLedger } from '../../../page-ledger.ts';
import type { Database } from './connection.ts';

export interface LedgerOptions {
  /** The pages that a caller may use in a minute. */
  readonly perMinute: number;
  readonly clock: Clock;
  readonly log: Logger;
}

const SWEEP_MS = 60_000;

/**
 * Counts the pages of callers for all replicas. The row of a caller holds the time, by the server's clock, at which its
 * minute is full again.
 */
export function createPostgresLedger(
  database: Database,
  { perMinute, clock, log }: LedgerOptions,
): PageLedger {
  let hasTable = false;
  let isFailing = false;
  let sweptAt = clock.elapsed();

  return {
    take: async ({ spent, ago }) => {
      try {
        if (!hasTable) await prepare();
        const callers = spent.map(({ caller }) => digestOf(caller));
        const pages = spent.map((entry) => String(entry.pages));
        const rows = await database.transaction('write', (run) =>
          run('takePages', [callers, pages, perMinute, ago]),
        );
        await sweep();
        if (isFailing) log.info('pages of callers are counted in PostgreSQL again');
        isFailing = false;
        const left = new Map(rows.map((row) => [row['caller'], row['pages_left'] as number]));
        return callers.map((caller) => left.get(caller)!);
      } catch (error) {
        hasTable = false;
        if (!isFailing) log.warn({ err: error }, FAILED);
        isFailing = true;
        throw error;
      }
    },
  };

  /** A store that was created by an earlier version lacks the table. */
  async function prepare(): Promise<void> {
    await database.transaction('write', async (run) => {
      if ((await run('findPageTable')).length > 0) return;
      await run('lockCreation');
      await run('createPageTable');
    });
    hasTable = true;
  }

  async function sweep(): Promise<void> {
    if (clock.elapsed() - sweptAt < SWEEP_MS) return;
    sweptAt = clock.elapsed();
    await database.transaction('write', (run) => run('dropFullBudgets'));
  }
}

/** Names of callers may be long, and may be names of people. */
function digestOf(caller: string): string {
  return createHash('sha256').update(caller).digest('base64url');
}

const FAILED =
  'The pages that callers use cannot be counted in PostgreSQL now. Until they can, a caller may use PAGES_PER_MINUTE in ' +
  'each replica. Check the database server of TOKEN_STORE.';
