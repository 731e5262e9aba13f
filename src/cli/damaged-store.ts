import {
  mayFollow,
  saveRescued,
  waitingPairs,
  type RescueReport,
  type StoreIdentity,
} from '../tokens/store/rescue.ts';
import type { RescueFolder } from '../tokens/store/sealed-file.ts';
import type { PostgresStore } from '../tokens/store/postgres/postgres-store.ts';
import { SealError } from '../tokens/store/seal.ts';
import { adviceOn } from '../tokens/store/store-advice.ts';
import {
  StoreNewerError,
  StoreUnreadableError,
  type StoredTokens,
  type BoundedStore,
} from '../tokens/store/token-store.ts';
import { CommandError } from './terminal.ts';

/** A store that a command has opened. */
export interface OpenedStore {
  readonly store: BoundedStore;
  /** Undefined if the tables of this kind of store cannot be repaired. */
  readonly tables: Pick<PostgresStore, 'completeTables' | 'replaceTables'> | undefined;
  readonly rescueFolder: RescueFolder;
  /** Identifies the store, even one that does not exist. Before the store was read, only as far as the settings do. */
  readonly identity: StoreIdentity;
  /** To the standard error, as a line. */
  readonly warn: (text: string) => void;
  /** What the command changed so that the store can be used. Already printed. */
  readonly repairs: {
    /** The store was made anew, or its tables were. */
    isMade: boolean;
    /** Pairs of rescue files that were saved into the store. */
    saved: number;
  };
}

/** @throws CommandError if the store cannot be read, with the way back; nothing was changed then */
export async function readAsItIs(opened: OpenedStore): Promise<StoredTokens | null> {
  return opened.store.read().catch(async (error: unknown) => {
    throw await unreadable(opened, error);
  });
}

/** If the store is empty, saves what waits for it in rescue files first. @throws CommandError as `readAsItIs` does */
export async function readOrFill(opened: OpenedStore): Promise<StoredTokens | null> {
  const stored = await readAsItIs(opened);
  if (stored) return stored;
  const { saved } = await saveWaiting(opened);
  return saved.length > 0 ? readAsItIs(opened) : null;
}

/**
 * Recreates missing tables of an empty or damaged store, and saves the pairs that wait for it in rescue files.
 *
 * @param rebuild whether tables that are still damaged then, or do not take the newest pair, are renamed, and new ones
 *   are made: the confirmation of the operator
 * @throws CommandError if the store is still damaged then, with what to do
 */
export async function readOrRepair(
  opened: OpenedStore,
  { rebuild }: { rebuild: boolean },
): Promise<StoredTokens | null> {
  const { store, tables, warn } = opened;
  const stored = await store.read().catch((error: unknown) => completed(opened, error));
  if (stored) {
    if (!rebuild) return stored;
    if (await refusesNewest(opened, stored)) return rebuilt(opened);
    warn('The token store can be read, so no table was renamed.');
    return stored;
  }
  await saveWaiting(opened);
  try {
    return await store.read();
  } catch (error) {
    if (!tables || !isDamage(error)) throw await unreadable(opened, error);
    if (!rebuild) throw await stillDamaged(opened, error as Error);
  }
  return rebuilt(opened);
}

/** Recreates missing tables and rows. @throws CommandError if nothing is missing, or if that does not help */
async function completed(opened: OpenedStore, error: unknown): Promise<null> {
  const { tables, warn } = opened;
  if (!tables || !isDamage(error)) throw await unreadable(opened, error);
  const isCompleted = await tables.completeTables().catch(async (cause: unknown) => {
    throw await unreadable(opened, cause);
  });
  if (isCompleted) {
    opened.repairs.isMade = true;
    warn(COMPLETED);
  }
  return null;
}

/** Whether the tables can be read but refuse the next pair, as after a change of their constraints. */
async function refusesNewest(opened: OpenedStore, stored: StoredTokens): Promise<boolean> {
  if (!opened.tables || stored.movedTo !== null) return false;
  const { failed } = await saveWaiting(opened);
  return failed.some((file) => file.isRefused && mayFollow(file, stored, false));
}

async function rebuilt(opened: OpenedStore): Promise<StoredTokens | null> {
  const { store, tables, warn } = opened;
  await tables!.replaceTables().catch(async (cause: unknown) => {
    throw await unreadable(opened, cause);
  });
  opened.repairs.isMade = true;
  warn(
    `The tables of the token store were renamed, and new ones were made (${store.description}).`,
  );
  await saveWaiting(opened);
  return readAsItIs(opened);
}

export function printRescued({ saved, failed }: RescueReport, warn: (text: string) => void): void {
  for (const { generation } of saved) {
    warn(`A token pair was saved from a rescue file into the store: generation ${generation + 1}.`);
  }
  for (const { path, why } of failed) {
    warn(
      `The rescue file ${path} could not be saved into the store: ${why}. It was left as it is.`,
    );
  }
}

async function saveWaiting({ store, rescueFolder, identity, warn, repairs }: OpenedStore) {
  const report = await saveRescued(rescueFolder, store, { baseUrl: identity.baseUrl });
  printRescued(report, warn);
  repairs.saved += report.saved.length;
  return report;
}

const COMPLETED =
  'Tables of the token store, or rows that it needs, were missing or altered: they were made again. What was in missing ' +
  'tables is lost, such as the history, and which refresh tokens are spent.';

function isDamage(error: unknown): boolean {
  if (error instanceof StoreNewerError) return false;
  return error instanceof StoreUnreadableError || (error instanceof SealError && error.isAltered);
}

async function unreadable(opened: OpenedStore, error: unknown): Promise<CommandError> {
  const what = `The token store (${opened.store.description}) cannot be read: ${(error as Error).message}. It was left as it is.`;
  if (!isDamage(error)) {
    const pair = await waitingPair(opened);
    return new CommandError([what, ...(pair ? [pair] : []), adviceOn(error)].join(' '));
  }
  return new CommandError(
    `${what} ${await rescueLine(opened)} Correct that; if tables or rows are missing or damaged, run \`tokens recover\`, ` +
      'which makes missing tables again, saves a pair that waits, and says what else helps.',
  );
}

async function stillDamaged(opened: OpenedStore, { message }: Error): Promise<CommandError> {
  return new CommandError(
    `The token store (${opened.store.description}) is damaged: ${message}. ${await rescueLine(opened)} ` +
      `${REBUILD} If no machine has the pair, rebuild, and import a new token.`,
  );
}

export const REBUILD =
  '`tokens recover --rebuild` renames its tables (to …_damaged_<time>: nothing is deleted), makes new ones, and saves the ' +
  'pair that waits into them. New tables do not know which refresh tokens are spent, or that the set was moved to another ' +
  'store: do not rebuild this one after `tokens export`.';

async function rescueLine(opened: OpenedStore): Promise<string> {
  return (
    (await waitingPair(opened)) ??
    `The rescue folder of this machine (${opened.rescueFolder.directory}) has no pair for it that can be read: ` +
      'look in that of each machine that runs gateways, and run `tokens recover` there.'
  );
}

async function waitingPair({ store, rescueFolder, identity }: OpenedStore) {
  const waiting = await waitingPairs(rescueFolder, store, identity);
  const ours = waiting.find(({ isOurs, why }) => isOurs && why === undefined);
  return (
    ours &&
    `Its newest token pair waits in a rescue file (${ours.path}, generation ${ours.generation! + 1}): do not remove it.`
  );
}
