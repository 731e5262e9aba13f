import { ODDITIES, type Oddity } from './service.ts';

/**
 * Rows of the fault table that can happen here. Files of SQLite, sockets, encodings, token links, keys and the command
 * line are tested with real ones: test/faults, test/tokens/store, test/tokens/service and test/cli.
 */
export const ROWS = [
  'killed before the claim',
  'killed after the claim',
  'killed while sending',
  'killed before the answer was read',
  'killed with an unsaved pair',
  'killed after the save',
  'killed during recovery',
  'asked to end during an exchange',
  'stopped between claim and send, longer than every time-out',
  'stopped while sending, longer than every time-out',
  'an uncertain exchange is repeated',
  'an exchange is refused as too early',
  'an exchange is refused as too early, and its process ends before that is recorded',
  'a refresh token that was refused as too early is accepted after the expiry',
  'a spent refresh token is refused while the access token works',
  'a loser hears invalid_grant before the winner has saved',
  'the database loses commits',
  'the database is down before a claim',
  'the database is down after an answer',
  'the database is full before a claim',
  'the database is full after an answer',
  'a commit is not heard',
  'a store call hangs',
  'a replica is cut off from the database',
  'behind a transaction pooler',
  'rows of the tokens are deleted or altered',
  'an old backup is restored, all processes being down',
  'an older copy is put under running replicas, and another one starts on it',
  'the rescue folder cannot be written',
  'nothing can be saved, neither to the store nor to a file',
  'a rescue file is saved by the next start',
  'a wall clock jumps',
  'the clock of the database is set back',
  'all replicas meet an expired token at once',
  'many callers meet an expired token at once',
  'replicas start at once on one link',
  'the administrator is blocked',
  'the service is unreachable',
  'the set is moved to another store',
  'an interrupted move is finished',
  'said to be lost',
  ...ODDITIES.map((oddity): `an exchange with: ${Oddity}` => `an exchange with: ${oddity}`),
] as const;

export type Row = (typeof ROWS)[number];
