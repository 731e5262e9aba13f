import type { DatabaseSync } from 'node:sqlite';
import type { Sealer } from './seal.ts';
import { about, type TokenField } from './sqlite-layout.ts';

interface SealedPair {
  rowid: number;
  name: string;
  base_url: string;
  generation: number;
  access_token: string;
  refresh_token: string;
}

const PAIRS = `
  SELECT p.rowid, s.name, s.base_url, p.generation, p.access_token, p.refresh_token
  FROM token_pair p JOIN token_set s ON s.id = p.set_id`;
const FIELDS = ['access_token', 'refresh_token'] as const;

/** @throws SealError when a token of the store cannot be opened */
export function checkKeys(database: DatabaseSync, sealer: Sealer): void {
  for (const { key } of rings(database)) sealer.open(key, about.ring);
  for (const pair of pairs(database)) {
    for (const field of FIELDS) sealer.open(pair[field], aboutOf(pair, field));
  }
}

/** Seals with the newest key what is not. Within a transaction. @returns whether there was anything */
export function reseal(database: DatabaseSync, sealer: Sealer): boolean {
  const writeKey = database.prepare('UPDATE ring SET key = ? WHERE id = ?');
  const writeTokens = database.prepare(
    'UPDATE token_pair SET access_token = ?, refresh_token = ? WHERE rowid = ?',
  );
  const again = (sealed: string, what: string) => sealer.seal(sealer.open(sealed, what), what);
  const oldRings = rings(database).filter(({ key }) => !sealer.isCurrent(key));
  for (const { id, key } of oldRings) writeKey.run(again(key, about.ring), id);
  const oldPairs = pairs(database).filter((pair) =>
    FIELDS.some((field) => !sealer.isCurrent(pair[field])),
  );
  for (const pair of oldPairs) {
    const [access, refresh] = FIELDS.map((field) => again(pair[field], aboutOf(pair, field)));
    writeTokens.run(access!, refresh!, pair.rowid);
  }
  return oldRings.length + oldPairs.length > 0;
}

function rings(database: DatabaseSync): { id: number; key: string }[] {
  return database.prepare('SELECT id, key FROM ring').all() as { id: number; key: string }[];
}

function pairs(database: DatabaseSync): SealedPair[] {
  return database.prepare(PAIRS).all() as unknown as SealedPair[];
}

function aboutOf({ name, base_url: baseUrl, generation }: SealedPair, field: TokenField): string {
  return about.token(name, baseUrl, generation, field);
}
