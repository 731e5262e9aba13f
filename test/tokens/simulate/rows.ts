import { ODDITIES, type Oddity } from './service.ts';

/**
 * Rows of the fault table that can happen here. Files of SQLite, connections to PostgreSQL, sockets, token links, keys and
 * the command line are tested with real ones.
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
  'a refresh token is sent again',
  'an exchange is refused as too early',
  'what was refused as too early is accepted after the expiry',
  'the database loses commits',
  'the table of the tokens is emptied',
  'the newest pair is put back',
  'the database is down before a claim',
  'the database is down after an answer',
  'the database is full before a claim',
  'the database is full after an answer',
  'a commit is not heard',
  'a store call hangs',
  'a replica is cut off from the database',
  'behind a transaction pooler',
  'an old backup is restored, all processes being down',
  'the emergency folder is full',
  'nothing can be saved, neither to the store nor to a file',
  'an emergency file is saved by the next start',
  'replicas share a folder for emergency files',
  'a wall clock jumps',
  'the clock of the database is set back',
  'all replicas meet an expired token at once',
  'many callers meet an expired token at once',
  'replicas start at once on one link',
  'the administrator is blocked',
  'the service is unreachable',
  'said to be lost',
  ...ODDITIES.map((oddity): `an exchange with: ${Oddity}` => `an exchange with: ${oddity}`),
] as const;

export type Row = (typeof ROWS)[number];
