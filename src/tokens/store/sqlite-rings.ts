import { createSecretKey, type KeyObject } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { fingerprintOf } from './fingerprint.ts';
import type { Sealer } from './seal.ts';
import { about } from './sqlite-layout.ts';
import type { FingerprintRing } from './token-store.ts';

/** The fingerprints of all refresh tokens that a store ever held. The first key is the store's own. */
export type Rings = ReturnType<typeof prepareRings>;

export function prepareRings(database: DatabaseSync, sealer: Sealer) {
  const keys = database.prepare('SELECT id, key FROM ring ORDER BY id');
  const firstKey = database.prepare('SELECT key FROM ring ORDER BY id LIMIT 1');
  const insertKey = database.prepare('INSERT INTO ring (key) VALUES (?)');
  const insert = database.prepare(
    'INSERT INTO fingerprint VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
  );
  const find = database.prepare(
    'SELECT generation FROM fingerprint WHERE ring_id = ? AND fingerprint = ?',
  );
  const known = database.prepare(
    'SELECT fingerprint, generation FROM fingerprint WHERE ring_id = ? ORDER BY rowid',
  );

  const rings = () =>
    keys.all().map(({ id, key }) => ({
      id: id as number,
      key: Buffer.from(sealer.open(key as string, about.ring), 'base64'),
    }));
  let first: { sealed: string; id: number; key: KeyObject; storeId: string } | undefined;
  // Every row is checked with it. It is another one when another store is written over the file.
  const own = () => {
    const sealed = firstKey.get()?.['key'] as string | undefined;
    if (first && sealed === first.sealed) return first;
    const [ring] = rings();
    if (!ring) throw new Error('the file is damaged: it has lost the key of its fingerprints');
    const key = createSecretKey(ring.key);
    first = {
      sealed: sealed!,
      id: ring.id,
      key,
      storeId: fingerprintOf(key, 'store').slice(0, 16),
    };
    return first;
  };

  return {
    ownKey: (): KeyObject => own().key,
    /** Every copy of the file has the same key. */
    storeId: (): string => own().storeId,
    remember: (refreshToken: string, generation: number): void => {
      const { id, key } = own();
      insert.run(id, fingerprintOf(key, refreshToken), generation);
    },
    /** The generation that held this refresh token first. */
    find: (refreshToken: string): number | undefined => {
      for (const { id, key } of rings()) {
        const row = find.get(id, fingerprintOf(key, refreshToken));
        if (row) return row['generation'] as number;
      }
      return undefined;
    },
    all: (): FingerprintRing[] =>
      rings().map(({ id, key }) => ({
        key,
        known: known.all(id).map((row) => ({ ...row }) as FingerprintRing['known'][number]),
      })),
    add: (added: readonly FingerprintRing[]): void => {
      for (const ring of added) {
        const same = rings().find(({ key }) => key.equals(ring.key));
        const id = same?.id ?? insertKey.run(seal(ring.key)).lastInsertRowid;
        for (const { fingerprint, generation } of ring.known) {
          insert.run(id, fingerprint, generation);
        }
      }
    },
  };

  function seal(key: Uint8Array): string {
    return sealer.seal(Buffer.from(key).toString('base64'), about.ring);
  }
}
