import type { DatabaseSync } from 'node:sqlite';
import type { Sealer } from './seal.ts';
import { about, type TokenField } from './sqlite-layout.ts';

interface SealedPair extends Record<TokenField, string> {
  rowid: number;
  name: string;
  base_url: string;
  generation: number;
}

const PAIRS = `
  SELECT p.rowid, s.name, s.base_url, p.generation, p.access_token, p.refresh_token
  FROM token_pair p JOIN token_set s ON s.id = p.set_id WHERE p.refresh_token <> ''`;
const FIELDS = ['access_token', 'refresh_token'] as const;

/** Whether everything is sealed with the newest key. */
export function isSealedWell(database: DatabaseSync, sealer: Sealer): boolean {
  return (
    rings(database).every(({ key }) => sealer.isCurrent(key)) &&
    pairs(database).every((pair) => FIELDS.every((field) => sealer.isCurrent(pair[field])))
  );
}

/** Seals everything with the newest key. Within a transaction. */
export function reseal(database: DatabaseSync, sealer: Sealer): void {
  const writeKey = database.prepare('UPDATE ring SET key = ? WHERE id = ?');
  const writeTokens = database.prepare(
    'UPDATE token_pair SET access_token = ?, refresh_token = ? WHERE rowid = ?',
  );
  const again = (sealed: string, what: string) => sealer.seal(sealer.open(sealed, what), what);
  for (const { id, key } of rings(database)) writeKey.run(again(key, about.ring), id);
  for (const pair of pairs(database)) {
    const { rowid, name, base_url: baseUrl, generation } = pair;
    const [access, refresh] = FIELDS.map((field) =>
      again(pair[field], about.token(name, baseUrl, generation, field)),
    );
    writeTokens.run(access!, refresh!, rowid);
  }
}

function rings(database: DatabaseSync): { id: number; key: string }[] {
  return database.prepare('SELECT id, key FROM ring').all() as { id: number; key: string }[];
}

function pairs(database: DatabaseSync): SealedPair[] {
  return database.prepare(PAIRS).all() as unknown as SealedPair[];
}
