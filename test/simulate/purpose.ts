import type { StatementName, Value } from '../../src/tokens/store/postgres/statements.ts';

/** The effect of a transaction, as its statements show it. */
export type Purpose =
  'prepare' | 'read' | 'ask' | 'import' | 'claim' | 'save' | 'endAttempt' | 'move';

/** A statement that was executed. */
export interface Done {
  readonly name: StatementName;
  readonly values: readonly Value[];
}

/** The subject of a commit: the generation that is claimed or was exchanged, and the pair that is saved. */
export interface About {
  readonly generation: number | undefined;
  readonly refreshToken: string | undefined;
  /** How an exchange ended that gave no pair. */
  readonly outcome: string | undefined;
}

export function purposeOf(done: readonly Done[]): Purpose {
  const has = (statement: StatementName) => done.some(({ name }) => name === statement);
  const outcome = done.find(({ name }) => name === 'insertAttempt')?.values[4];
  if (has('createTables')) return 'prepare';
  if (has('insertSet')) return 'import';
  if (has('insertPair')) return 'save';
  if (outcome === 'begun') return 'claim';
  if (has('endAttempt')) return 'endAttempt';
  if (has('updateSet')) return 'move';
  return has('announce') ? 'ask' : 'read';
}

export function aboutOf(done: readonly Done[]): About {
  const values = (statement: StatementName) => done.find(({ name }) => name === statement)?.values;
  const pair = values('insertPair');
  const entry = values('insertAttempt');
  const ended = values('endAttempt');
  const claimed = entry?.[4] === 'begun' ? Number(entry[2]) : undefined;
  return {
    generation: pair ? Number(pair[1]) - 1 : claimed,
    refreshToken: pair && tokenIn(String(pair[3])),
    outcome: pair || ended === undefined ? undefined : String(ended[1]),
  };
}

/** @param pair as it is stored, unsealed */
export function tokenIn(pair: string): string | undefined {
  return /"refreshToken":"([^"]*)"/.exec(pair)?.[1];
}
