import type { StatementName } from '../../src/tokens/store/postgres/connection.ts';
import type { TokenDocument } from '../../src/tokens/store/token-document.ts';

/** The effect of a transaction, as its statements and the document show it. */
export type Purpose =
  'prepare' | 'read' | 'ask' | 'import' | 'claim' | 'save' | 'endAttempt' | 'move';

/** The subject of a commit: the generation that is claimed or was exchanged, and the pair that is saved. */
export interface About {
  readonly purpose: Purpose;
  readonly generation?: number;
  readonly refreshToken?: string;
  /** How an exchange ended that gave no pair. */
  readonly outcome?: string;
}

/** @param before what the transaction read @param after what it wrote */
export function aboutOf(
  done: ReadonlySet<StatementName>,
  before: TokenDocument | undefined,
  after: TokenDocument | undefined,
): About {
  if (done.has('createTables')) return { purpose: 'prepare' };
  if (!before || !after || !done.has('writeDocument')) {
    return { purpose: done.has('announce') ? 'ask' : 'read' };
  }
  const known = new Set(before.sets.flatMap(({ pairs }) => pairs.map(({ attempt }) => attempt)));
  const saved = after.sets
    .flatMap(({ pairs }) => pairs)
    .find(({ attempt, pair }) => pair && !known.has(attempt));
  const isImport = after.sets.length > before.sets.length;
  if (saved || isImport) {
    return {
      purpose: isImport ? 'import' : 'save',
      ...(saved && { generation: saved.generation - 1, refreshToken: saved.pair!.refreshToken }),
    };
  }
  const earlier = new Map(before.attempts.map(({ attempt, outcome }) => [attempt, outcome]));
  const changed = after.attempts.findLast(
    ({ attempt, outcome }) => earlier.get(attempt) !== outcome,
  );
  if (changed?.outcome === 'begun') return { purpose: 'claim', generation: changed.generation };
  if (changed && earlier.has(changed.attempt)) {
    return { purpose: 'endAttempt', outcome: changed.outcome };
  }
  return { purpose: 'move' };
}
