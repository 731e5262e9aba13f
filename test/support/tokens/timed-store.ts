import { createHmac, createSecretKey, randomBytes, randomUUID, type KeyObject } from 'node:crypto';
import { shownFingerprint } from '../../../src/tokens/store/fingerprint.ts';
import type { TokenPair } from '../../../src/tokens/token-set.ts';
import type {
  FingerprintRing,
  HistoryEntry,
  NewClaim,
  StoredTokens,
  TokenStore,
} from '../../../src/tokens/store/token-store.ts';

interface SetRow {
  readonly set: string;
  readonly baseUrl: string;
  head: number;
  lost: boolean;
  movedTo: string | null;
  withdrawn: boolean;
  claim: { attempt: string; at: number; until: number; ended: boolean } | null;
}

interface PairRow {
  readonly set: string;
  readonly generation: number;
  readonly attempt: string;
  readonly pair: TokenPair;
  readonly savedAt: number;
  readonly wasHead: boolean;
}

type AttemptRow = { -readonly [Key in keyof HistoryEntry]: HistoryEntry[Key] } & { set: string };

interface Ring {
  readonly key: Uint8Array;
  readonly known: Map<string, number>;
}

const DESCRIPTION = 'timed';

/** The state that all handles share, like the tables of a database server. */
export interface TimedDatabase {
  /** A connection of one process. */
  open(): TokenStore;
}

/**
 * A store whose claim is a lock with a deadline, by the clock of its server: whether the process that wrote
 * it lives is unknown. It behaves like a store in PostgreSQL.
 *
 * @param now the server's clock, ms
 */
export function timedDatabase(now: () => number): TimedDatabase {
  const sets: SetRow[] = [];
  const pairs: PairRow[] = [];
  const attempts: AttemptRow[] = [];
  const own: Ring = { key: randomBytes(32), known: new Map() };
  const rings = [own];
  const storeId = randomUUID();

  const ownKey = createSecretKey(own.key);
  const printOf = (token: string, key: KeyObject | Uint8Array = ownKey) =>
    createHmac('sha256', key).update(token).digest('hex');
  const remember = ({ refreshToken }: TokenPair, generation: number) =>
    note(own, printOf(refreshToken), generation);
  const knownAs = ({ refreshToken }: TokenPair) =>
    rings
      .map((ring) => ring.known.get(printOf(refreshToken, ring.key)))
      .find((generation) => generation !== undefined);
  const shown = new Map<string, string>();
  /** Each reading gives it. */
  const shownPrint = (token: string) => {
    if (!shown.has(token)) shown.set(token, shownFingerprint(token));
    return shown.get(token)!;
  };
  const current = () => sets.findLast(({ withdrawn }) => !withdrawn);
  const newest = () => Math.max(0, ...pairs.map(({ generation }) => generation));
  const headPair = ({ set, head }: SetRow) =>
    pairs.find((row) => row.set === set && row.generation === head)!;

  function read(): StoredTokens | null {
    const row = current();
    if (!row) return null;
    const { set, baseUrl, head: generation, lost, movedTo, claim } = row;
    const { pair, savedAt, attempt } = headPair(row);
    const live = claim !== null && !claim.ended && claim.until > now();
    const isUnanswered = (one: AttemptRow) =>
      one.set === set &&
      one.generation === generation &&
      isOpen(one) &&
      !(live && one.attempt === claim.attempt);
    return {
      storeId,
      set,
      baseUrl,
      generation,
      pair,
      attempt,
      fingerprint: shownPrint(pair.refreshToken),
      savedAt,
      age: now() - savedAt,
      lost,
      movedTo,
      imported: attempt === 'import',
      claim: claim && { attempt: claim.attempt, age: now() - claim.at, live },
      unanswered: attempts.filter(isUnanswered).length,
      surplus: pairs.filter((one) => one.set === set && one.generation === generation).length - 1,
    };
  }

  function write(entry: Omit<AttemptRow, 'latencyMs'>): void {
    attempts.unshift({ ...entry, latencyMs: null });
  }

  function add({ key, known }: FingerprintRing): void {
    let ring = rings.find((one) => Buffer.compare(one.key, key) === 0);
    if (!ring) rings.push((ring = { key, known: new Map() }));
    for (const { fingerprint, generation } of known) note(ring, fingerprint, generation);
  }

  function begin(
    set: Omit<PairRow, 'set' | 'attempt' | 'wasHead'> & { baseUrl: string; imported: boolean },
  ) {
    const { baseUrl, generation, pair, savedAt, imported } = set;
    const row = newRow(randomUUID(), baseUrl, generation);
    sets.push(row);
    const attempt = imported ? 'import' : 'moved';
    pairs.push({ set: row.set, generation, attempt, pair, savedAt, wasHead: true });
    remember(pair, generation);
    return row;
  }

  function take(row: SetRow, { attempt, generation, lifeMs, replica }: NewClaim) {
    const exclusive = row.claim === null || row.claim.ended;
    const at = now();
    row.claim = { attempt, at, until: at + lifeMs, ended: false };
    write({ set: row.set, at, generation, attempt, outcome: 'begun', replica });
    return { exclusive };
  }

  const open = (): TokenStore => ({
    description: DESCRIPTION,
    behind: 'failover',
    notices: [],
    read: async () => read(),
    import: async ({ baseUrl, pair, replica, after }) => {
      const at = now();
      const head = read();
      const known = knownAs(pair);
      if (known !== undefined) {
        const isCurrent = head?.pair.refreshToken === pair.refreshToken;
        return { kind: 'known', generation: known, current: isCurrent };
      }
      if (head?.set !== after?.set || head?.generation !== after?.generation) {
        return { kind: 'overtaken' };
      }
      const generation = newest() + 1;
      const { set } = begin({ baseUrl, generation, pair, savedAt: at, imported: true });
      write({ set, at, generation, attempt: set, outcome: 'imported', replica });
      return { kind: 'imported', stored: read()! };
    },
    withdraw: async (set) => {
      const before = sets.findLast((row) => row.set !== set && !row.withdrawn);
      const row = current();
      if (row?.set !== set || row.claim !== null) return false;
      if (!before || before.lost || before.movedTo !== null) return false;
      row.withdrawn = true;
      return true;
    },
    claim: async (claim) => {
      const row = current();
      if (!row || row.set !== claim.set || row.head !== claim.generation) return undefined;
      if (row.movedTo !== null) return undefined;
      const known = attempts.find(({ attempt }) => attempt === claim.attempt);
      if (known)
        return row.claim?.attempt === claim.attempt && known.outcome === 'begun'
          ? { exclusive: true }
          : undefined;
      if (row.claim && !row.claim.ended && row.claim.until > now()) return undefined;
      if (claim.over !== undefined && claim.over !== (row.claim?.attempt ?? null)) return undefined;
      return take(row, claim);
    },
    endAttempt: async (attempt, { outcome, latencyMs }) => {
      const entry = attempts.find((one) => one.attempt === attempt);
      if (!entry) return;
      if (isOpen(entry)) Object.assign(entry, { outcome, latencyMs });
      const row = sets.find(({ set }) => set === entry.set)!;
      if (outcome === 'invalid-grant' && row.head === entry.generation) row.lost = true;
      if (row.claim?.attempt !== attempt) return;
      row.claim = outcome === 'uncertain' ? { ...row.claim, ended: true } : null;
    },
    save: async ({ set, generation, attempt, pair, outcome, at, latencyMs, home }) => {
      let row = sets.find((one) => one.set === set);
      if (!row) {
        const isCopy = home?.storeId === storeId;
        if (!home || !(isCopy || home.store === DESCRIPTION))
          throw new Error(`This store does not know the set ${set}.`);
        const service = current()?.baseUrl ?? home.baseUrl;
        if (service !== home.baseUrl) throw new Error(`This store belongs to ${service}.`);
        const isNewest = generation + 1 > newest();
        row = newRow(set, home.baseUrl, generation);
        if (isCopy && isNewest) sets.push(row);
        else sets.unshift(row);
      }
      const next = generation + 1;
      const ofNext = pairs.filter((one) => one.set === set && one.generation === next);
      const entry = attempts.find((one) => one.attempt === attempt);
      if (entry) Object.assign(entry, { outcome, latencyMs });
      const there = ofNext.find((one) => one.attempt === attempt);
      if (there) return there.wasHead;
      const wasHead = row.head <= generation;
      pairs.push({ set, generation: next, attempt, pair, savedAt: at, wasHead });
      remember(pair, next);
      if (row.claim?.attempt === attempt) row.claim = null;
      if (wasHead) Object.assign(row, { head: next, lost: false, claim: null });
      return wasHead;
    },
    holds: async ({ set, generation, attempt, pair }) => {
      const row = sets.find((one) => one.set === set);
      const isSame = (one: PairRow) =>
        one.set === set && one.generation === generation + 1 && one.attempt === attempt;
      return pairs.some(isSame) || (row === undefined && knownAs(pair) !== undefined);
    },
    history: async (limit) => attempts.slice(0, limit).map(({ set: _set, ...entry }) => entry),
    moveOut: async ({ to, replica }) => {
      const at = now();
      const row = current();
      if (!row) throw new Error('There is no token set to move.');
      const isNew = row.movedTo === null;
      if (isNew && row.lost) throw new Error('The token set is lost: there is nothing to move.');
      if (isNew && (row.claim || read()!.unanswered > 0))
        throw new Error('An exchange is under way or uncertain.');
      if (row.movedTo !== null && row.movedTo !== to) {
        throw new Error(`The token set was moved to ${row.movedTo} already.`);
      }
      if (isNew) {
        const { set, head: generation } = row;
        write({ set, at, generation, attempt: randomUUID(), outcome: 'moved-out', replica });
      }
      row.movedTo = to;
      const { pair, savedAt, attempt } = headPair(row);
      return {
        baseUrl: row.baseUrl,
        generation: row.head,
        pair,
        age: now() - savedAt,
        imported: attempt === 'import',
        fingerprints: rings.map(givenRing),
      };
    },
    moveBack: async (to) => {
      const row = current();
      if (row?.movedTo === to) row.movedTo = null;
    },
    moveIn: async ({ generation, pair, fingerprints, age, replica, ...moved }) => {
      const at = now();
      const head = read();
      if (generation <= newest() && knownAs(pair) !== undefined) return;
      if (head && !head.lost && head.movedTo === null) {
        throw new Error('This store holds a token set that is in use.');
      }
      const next = Math.max(generation, newest()) + 1;
      for (const ring of fingerprints) add(ring);
      const { set } = begin({ ...moved, generation: next, pair, savedAt: at - age });
      const attempt = randomUUID();
      write({ set, at, generation: next, attempt, outcome: 'moved-in', replica });
    },
    close: async () => {},
  });
  return { open };
}

function newRow(set: string, baseUrl: string, head: number): SetRow {
  return { set, baseUrl, head, lost: false, movedTo: null, withdrawn: false, claim: null };
}

function isOpen({ outcome }: AttemptRow): boolean {
  return outcome === 'uncertain' || outcome === 'begun';
}

function note({ known }: Ring, fingerprint: string, generation: number): void {
  if (!known.has(fingerprint)) known.set(fingerprint, generation);
}

function givenRing({ key, known }: Ring): FingerprintRing {
  const prints = [...known].map(([fingerprint, generation]) => ({ fingerprint, generation }));
  return { key, known: prints };
}
