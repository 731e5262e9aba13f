import { existsSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { readStoreAddress, type StoreAddress } from '../config/store-address.ts';
import { systemClock } from '../clock.ts';
import { boundStore } from '../tokens/store/bounded-store.ts';
import { saveRescued } from '../tokens/store/rescue.ts';
import type { TokenStore } from '../tokens/store/token-store.ts';
import { CommandError, type Terminal } from './terminal.ts';
import { noTokens, withTokenStore, type TokenSession } from './token-session.ts';
import { describeStore, openStore, replicaOf } from './token-store.ts';

/** Moves the set to another store. From then on this one refuses to refresh it. */
export async function tokensExport(address: string, terminal: Terminal): Promise<void> {
  const target = readTarget(address);
  await withTokenStore(terminal, 'work', async (session) => {
    const { config, store, stored } = session;
    if (isSameStore(target, config.tokenStore)) throw new CommandError(SAME_STORE, 2);
    if (!stored) throw await noTokens(session);
    // A pair in a rescue file must not be saved into this store after the move.
    await saveRescued(session.rescueFolder, store, { baseUrl: stored.baseUrl });
    const other = boundStore(openStore(target, config), systemClock);
    try {
      await move(session, other, target, replicaOf(terminal.owner));
    } catch (error) {
      throw new CommandError((error as Error).message);
    } finally {
      await other.close();
    }
    terminal.stdout.write(
      `The token set is in ${other.description} now, and ${store.description} refuses to refresh it. ` +
        `Set TOKEN_STORE${target.kind === 'sqlite' ? `=${other.description}` : ' to its address'} for every gateway that used the other, and restart them.\n`,
    );
  });
}

const SAME_STORE =
  'That is the store that the set is in, so nothing was changed. Give another one.';

/** With its absolute path: the source store reports it from then on, wherever a command is started. */
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

function isSameStore(one: StoreAddress, other: StoreAddress): boolean {
  if (one.kind === 'sqlite' && other.kind === 'sqlite') {
    return realPath(one.path) === realPath(other.path);
  }
  return describeStore(one) === describeStore(other);
}

function realPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : resolve(path);
}

async function move(
  { store, stored }: TokenSession,
  other: TokenStore,
  target: StoreAddress,
  replica: string,
): Promise<void> {
  const to = describeStore(target);
  const there = await other.read();
  // Two addresses can be of one store.
  if (there?.storeId === stored!.storeId) throw new Error(SAME_STORE);
  if (there && there.baseUrl !== stored!.baseUrl) {
    throw new Error(
      `The store ${to} belongs to ${there.baseUrl}, and this set to ${stored!.baseUrl}. Nothing was moved; choose another store.`,
    );
  }
  const sign = { replica };
  const wasMoved = stored!.movedTo === to;
  const moved = await store.moveOut({ to, ...sign });
  await other.moveIn({ ...moved, ...sign }).catch(async (error: Error) => {
    // It may have arrived then, and have been refreshed there since: moving it back would send a spent refresh token.
    if (wasMoved) {
      throw new Error(
        `The token set was moved to ${to} before, and that store has a set in use. Nothing was changed.`,
      );
    }
    await store.moveBack(to);
    throw error;
  });
}
