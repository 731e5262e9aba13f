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
  type TokenStore,
} from '../tokens/store/token-store.ts';
import { CommandError } from './terminal.ts';

export interface ReadParts {
  readonly store: TokenStore;
  /** Undefined if the tables of this kind of store cannot be repaired. */
  readonly tables: Pick<PostgresStore, 'completeTables' | 'replaceTables'> | undefined;
  readonly rescueFolder: RescueFolder;
  /** As far as it is known without reading the store. */
  readonly identity: StoreIdentity;
  readonly print: (text: string) => void;
  readonly repairs: Repairs;
}

/** What a command changed so that the store can be used. */
export interface Repairs {
  /** The store was made anew, or its tables were. */
  isMade: boolean;
  /** Pairs of rescue files that were saved into the store. */
  saved: number;
}

/** @throws CommandError if the store cannot be read, with the way back; nothing was changed then */
export async function readAsItIs(parts: ReadParts): Promise<StoredTokens | null> {
  return parts.store.read().catch(async (error: unknown) => {
    throw await unreadable(parts, error);
  });
}

/** If the store is empty, saves what waits for it in rescue files first. @throws CommandError as `readAsItIs` does */
export async function readOrFill(parts: ReadParts): Promise<StoredTokens | null> {
  const stored = await readAsItIs(parts);
  if (stored) return stored;
  const { saved } = await saveWaiting(parts);
  return saved.length > 0 ? readAsItIs(parts) : null;
}

/**
 * Recreates missing tables of an empty or damaged store, and saves the pairs that wait for it in rescue files.
 *
 * @param rebuild whether tables that are still damaged then, or do not take the newest pair, are renamed, and new ones
 *   are made: the confirmation of the operator
 * @throws CommandError if the store is still damaged then, with what to do
 */
export async function readOrRepair(
  parts: ReadParts,
  { rebuild }: { rebuild: boolean },
): Promise<StoredTokens | null> {
  const { store, tables, print } = parts;
  const stored = await store.read().catch((error: unknown) => completed(parts, error));
  if (stored) {
    if (!rebuild) return stored;
    if (await refusesNewest(parts, stored)) return rebuilt(parts);
    print('The token store can be read, so no table was renamed.');
    return stored;
  }
  await saveWaiting(parts);
  try {
    return await store.read();
  } catch (error) {
    if (!tables || !isDamage(error)) throw await unreadable(parts, error);
    if (!rebuild) throw await stillDamaged(parts, error as Error);
  }
  return rebuilt(parts);
}

/** Makes what is missing of damaged tables. @throws CommandError if that is not the fault, or does not help */
async function completed(parts: ReadParts, error: unknown): Promise<null> {
  const { tables, print } = parts;
  if (!tables || !isDamage(error)) throw await unreadable(parts, error);
  const isCompleted = await tables.completeTables().catch(async (cause: unknown) => {
    throw await unreadable(parts, cause);
  });
  if (isCompleted) {
    parts.repairs.isMade = true;
    print(COMPLETED);
  }
  return null;
}

/** Whether the tables can be read but refuse the next pair, as after a change of their constraints. */
async function refusesNewest(parts: ReadParts, stored: StoredTokens): Promise<boolean> {
  if (!parts.tables || stored.movedTo !== null) return false;
  const { failed } = await saveWaiting(parts);
  return failed.some((file) => file.isRefused && mayFollow(file, { ...stored, ...SURE }));
}

const SURE = { mayHaveSuccessor: false };

async function rebuilt(parts: ReadParts): Promise<StoredTokens | null> {
  const { store, tables, print } = parts;
  await tables!.replaceTables().catch(async (cause: unknown) => {
    throw await unreadable(parts, cause);
  });
  parts.repairs.isMade = true;
  print(
    `The tables of the token store were renamed, and new ones were made (${store.description}).`,
  );
  await saveWaiting(parts);
  return readAsItIs(parts);
}

export function printRescued({ saved, failed }: RescueReport, print: (text: string) => void): void {
  for (const { generation } of saved) {
    print(
      `A token pair was saved from a rescue file into the store: generation ${generation + 1}.`,
    );
  }
  for (const { path, why } of failed) {
    print(
      `The rescue file ${path} could not be saved into the store: ${why}. It was left as it is.`,
    );
  }
}

async function saveWaiting({ store, rescueFolder, identity, print, repairs }: ReadParts) {
  const report = await saveRescued(rescueFolder, store, { baseUrl: identity.baseUrl });
  printRescued(report, print);
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

async function unreadable(parts: ReadParts, error: unknown): Promise<CommandError> {
  const what = `The token store (${parts.store.description}) cannot be read: ${(error as Error).message}. It was left as it is.`;
  if (!isDamage(error)) {
    const pair = await waitingPair(parts);
    return new CommandError([what, ...(pair ? [pair] : []), adviceOn(error)].join(' '));
  }
  return new CommandError(
    `${what} ${await rescueLine(parts)} Correct that; if tables or rows are missing or damaged, run \`tokens recover\`, ` +
      'which makes missing tables again, saves a pair that waits, and says what else helps.',
  );
}

async function stillDamaged(parts: ReadParts, { message }: Error): Promise<CommandError> {
  return new CommandError(
    `The token store (${parts.store.description}) is damaged: ${message}. ${await rescueLine(parts)} ` +
      `${REBUILD} If no machine has the pair, rebuild, and import a new token.`,
  );
}

export const REBUILD =
  '`tokens recover --rebuild` renames its tables (to …_damaged_<time>: nothing is deleted), makes new ones, and saves the ' +
  'pair that waits into them. New tables do not know which refresh tokens are spent, or that the set was moved to another ' +
  'store: do not rebuild this one after `tokens export`.';

async function rescueLine(parts: ReadParts): Promise<string> {
  return (
    (await waitingPair(parts)) ??
    `The rescue folder of this machine (${parts.rescueFolder.directory}) has no pair for it that can be read: ` +
      'look in that of each machine that runs gateways, and run `tokens recover` there.'
  );
}

async function waitingPair({ store, rescueFolder, identity }: ReadParts) {
  const waiting = await waitingPairs(rescueFolder, store, identity);
  const ours = waiting.find(({ isOurs, why }) => isOurs && why === undefined);
  return (
    ours &&
    `Its newest token pair waits in a rescue file (${ours.path}, generation ${ours.generation! + 1}): do not remove it.`
  );
}
