import { existsSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { readStoreAddress, type StoreAddress } from '../config/values.ts';
import { systemClock } from '../clock.ts';
import { boundStore, ANSWERS_MS } from '../tokens/store/token-store.ts';
import { saveRescued } from '../tokens/store/rescue.ts';
import { moveSet, SAME_STORE } from '../tokens/token-move.ts';
import { describeStore, openStore, replicaOf } from '../setup/token-store.ts';
import { CommandError, type Terminal } from './terminal.ts';
import { noTokens, withTokenStore } from './token-session.ts';

/** Moves the set to another store. Afterwards this one refuses to refresh it. */
export async function tokensExport(
  { store: address }: { store: string },
  terminal: Terminal,
): Promise<void> {
  const target = readTarget(address);
  await withTokenStore(terminal, 'work', async (session) => {
    const { config, store, stored } = session;
    if (isSameStore(target, config.tokenStore)) throw new CommandError(SAME_STORE, 2);
    if (!stored) throw await noTokens(session);
    // A pair in a rescue file must not be saved into this store after the move.
    const options = { baseUrl: stored.baseUrl };
    const { newest } = await saveRescued(session.rescueFolder, store, options);
    const other = boundStore(openStore(target, config), systemClock);
    // A set that is moved from an older copy of the database would have a spent refresh token.
    if (await store.askOthers()) await systemClock.sleep(ANSWERS_MS);
    let notices: readonly string[] = [];
    const generations = newest.map(({ pair }) => pair.generation + 1);
    try {
      await moveSet(store, other, stored, {
        replica: replicaOf(terminal.owner),
        newest: Math.max(0, ...generations),
      });
      ({ notices } = other);
    } catch (error) {
      throw new CommandError((error as Error).message);
    } finally {
      await other.close();
    }
    for (const { remove } of newest) remove();
    terminal.stdout.write(
      `The token set is in ${other.description} now, and ${store.description} refuses to refresh it. ` +
        `Set TOKEN_STORE${target.kind === 'sqlite' ? `=${other.description}` : ' to its address'} for every gateway that used the other, and restart them.\n` +
        notices.map((notice) => `${notice}\n`).join(''),
    );
  });
}

/** Makes the path absolute, because the source store reports it to commands in any working directory. */
function readTarget(address: string): StoreAddress {
  const target = readStoreAddress(address);
  if (target?.kind === 'sqlite') return { ...target, path: resolve(target.path) };
  if (target) return target;
  throw new CommandError(
    'That is not the address of a store; give sqlite:<file>, such as sqlite:/var/lib/recruiting/tokens.db, or ' +
      'postgres://<user>:<password>@<host>/<database>. Nothing was changed.',
    2,
  );
}

function isSameStore(a: StoreAddress, b: StoreAddress): boolean {
  if (a.kind === 'sqlite' && b.kind === 'sqlite') {
    return realPath(a.path) === realPath(b.path);
  }
  return describeStore(a) === describeStore(b);
}

function realPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : resolve(path);
}
