import { readStoreAddress } from '../config.ts';
import { systemClock } from '../clock.ts';
import { CommandError, type Terminal } from './terminal.ts';
import { withTokenStore } from './token-session.ts';
import { openStore, replicaOf } from './token-store.ts';

/** Moves the set to another store. From then on this one refuses to rotate it. */
export async function tokensExport(address: string, terminal: Terminal): Promise<void> {
  const target = readStoreAddress(address);
  if (!target) {
    throw new CommandError(
      `${address.split(':', 1)[0]}:… is no store that this version can write; give sqlite:<file>.`,
      2,
    );
  }
  await withTokenStore(terminal, { create: false }, async ({ config, store }) => {
    if (target.path === config.tokenStore.path) {
      throw new CommandError('That is the store that the set is in. Nothing was changed.', 2);
    }
    const to = `sqlite:${target.path}`;
    const other = openStore(target, config);
    try {
      const sign = { at: systemClock.now(), replica: replicaOf(terminal.owner) };
      const moved = await store.moveOut({ to, ...sign });
      await other.moveIn({ ...moved, ...sign }).catch(async (error: unknown) => {
        await store.moveBack(to);
        throw error;
      });
    } catch (error) {
      throw new CommandError((error as Error).message);
    } finally {
      await other.close();
    }
    terminal.stdout.write(
      `The token set is in ${to} now, and ${store.description} refuses to rotate it. ` +
        `Set TOKEN_STORE=${to} for every gateway that used the other, and restart them.\n`,
    );
  });
}
