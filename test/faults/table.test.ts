/** Each fault of custody and operation that was once found, and the promise that holds since. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const FAULTS: readonly (readonly [fault: string, file: string, title: string])[] = [
  [
    'a pair in an answer that is not a plain 200 was thrown away',
    'test/faults/answers.test.ts',
    'a pair in a 203, in gzip, in UTF-16 or before other bytes is kept by gateways and commands',
  ],
  [
    'an older copy of another set destroyed the newest pair',
    'test/faults/replaced.test.ts',
    'into an older copy with another set the newest pair is saved and served, and an alarm is raised',
  ],
  [
    '`tokens status` with other keys stopped all refreshes',
    'test/faults/replaced.test.ts',
    'a reading command with other keys than the gateway writes nothing, and the gateway continues',
  ],
  [
    'a message advised to put an older copy back',
    'test/tokens/advice.test.ts',
    'no message, alert or page advises to put an older copy of the store back',
  ],
  [
    '`tokens recover` did not read the rescue file of a store that was gone',
    'test/faults/replaced.test.ts',
    'if the store is removed, `tokens status` names the rescue file and `tokens recover` creates a store, also after kill -9',
  ],
  [
    'an older copy, put back right after a command had refreshed, lost the set',
    'test/faults/replaced.test.ts',
    'the pair of a command survives an older copy that is put back right after its refresh',
  ],
  [
    'a read-only store raised no alarm until the access token had expired',
    'test/faults/disks.test.ts',
    'a gateway that starts on a read-only store serves with the access token, refreshes nothing, and says so',
  ],
  [
    'the running gateway did not report a loss that a command had found',
    'test/faults/sharing.test.ts',
    'if a command finds the set lost, the gateway reports it in its log, with what to do',
  ],
  [
    'a foreign lock on the store blocked the event loop',
    'test/faults/locks.test.ts',
    'while another program locks the store, requests that need no store are answered, and the others continue afterwards',
  ],
  [
    'a gateway that was stopped inside a transaction blocked all others',
    'test/faults/locks.test.ts',
    'if a gateway is stopped inside a transaction, another one starts, serves and waits, and there is one exchange when it wakes',
  ],
  [
    'a save that never ended kept the pair in memory only, and SIGTERM waiting',
    'test/faults/locks.test.ts',
    'a save that never ends leaves the pair in the rescue file and in use, SIGTERM works, and the next start saves it',
  ],
  [
    'three gateways that started on one link reported that it was spent',
    'test/faults/sharing.test.ts',
    'three gateways that start with one link on an empty store make one import and one exchange, without an error',
  ],
  [
    'a store on FUSE, 9p or vboxsf was accepted',
    'test/tokens/store/sqlite-file.test.ts',
    'a file system of type %d is refused before anything is created there',
  ],
  [
    'after the lock file was deleted, two processes exchanged one token',
    'test/faults/locks.test.ts',
    'if the lock file is deleted during an exchange, another gateway and a command make no second one',
  ],
  [
    'refresh_token_expires_in: 1 on every answer caused a refresh every 0.7 s',
    'test/tokens/odd-answers.long.test.ts',
    'a pair with refresh_token_expires_in %j is kept, without endless refreshes and without a loss',
  ],
  [
    'a 403 of a firewall counted as the verdict of the service',
    'test/tokens/firewalled.test.ts',
    'after a 403 of a firewall on /auth_check, an uncertain refresh token is not sent again while the access token may work',
  ],
  [
    'SIGTERM to npm start left the gateway running',
    'test/cli/stopping.test.ts',
    'after SIGTERM the gateway answers requests in flight, and all processes end with exit code 0',
  ],
  [
    'an interrupted drain suggested a way on that left records out',
    'test/http/streaming.test.ts',
    'when a page fails finally, the earlier records remain, and the error has drained and resumeAfter (%s)',
  ],
  [
    'the Kubernetes example kept the tokens in its pod',
    'test/deploy/kubernetes.test.ts',
    'what one replica writes is in a volume that outlives its pod',
  ],
  [
    'a replica that started on an older copy of the database sent a spent refresh token, while others had the next pair',
    'test/replicas/replicas.test.ts',
    'a replica that starts on an older copy of the database sends no refresh token whose next pair the others have',
  ],
  [
    '`tokens export` moved a spent refresh token out of an older copy of the database',
    'test/cli/tokens-postgres.test.ts',
    'tokens export from an older copy of the database moves the pair that a running gateway saves again',
  ],
  [
    'a claim dated far ahead, because the clock of the database server had jumped, never ended',
    'test/tokens/store/timed-store.test.ts',
    'a claim dated a year ahead ends after its own length, by the clock of each process that saw it',
  ],
  [
    '`tokens recover` never got past a claim dated far ahead',
    'test/cli/tokens-postgres.test.ts',
    '`tokens recover` waits for the length of a claim dated a year ahead, and then sends the refresh token once more',
  ],
  [
    'a pair that was saved while the clock of the store was far behind counted as ended, and nothing sent it again',
    'test/cli/tokens-recover.test.ts',
    'a refresh token that has ended by the clock only is sent once, because that clock may have been wrong at the save',
  ],
  [
    'PostgreSQL lost tables or rows under running gateways, and SIGTERM lost the pair, without a way back',
    'test/faults/damaged-tables.test.ts',
    'with %s under running gateways the newest pair survives their end, and messages lead back',
  ],
  [
    'a start, `tokens recover` and `tokens import` all refused a store that was emptied',
    'test/faults/damaged-tables.test.ts',
    'if no machine has the pair, an emptied store and a rebuilt one take a new token',
  ],
  [
    'a pair was saved so that no start could read it, and the rescue file was emptied',
    'test/tokens/damaged-store.test.ts',
    'an older document is replaced by the newest pair, so that the next start reads it',
  ],
  [
    'a gateway that was stopped wrote its pair to a descriptor that was closed',
    'test/tokens/store/rescue-file.test.ts',
    'a rescue file that was closed writes nothing, whoever has its descriptor by then',
  ],
  [
    'a service that refuses refreshes before the expiry had its tokens given up as lost',
    'test/tokens/early-refusal.long.test.ts',
    'where early exchanges are refused with status %i, every caller is served, there is one alarm, and one exchange after each expiry',
  ],
  [
    '`tokens import` failed where the service refuses refreshes before the expiry',
    'test/cli/tokens-import.test.ts',
    'an import succeeds where the service refuses early refreshes with status %i; its exchange follows after the expiry',
  ],
  [
    'a process of an older version beside a newer one recorded an early refusal as a loss for all',
    'test/tokens/early-refusal.long.test.ts',
    'a loss that a process of an older version recorded beside this one is none',
  ],
  [
    'a fresh access token that was refused as expired blocked callers for half of its life',
    'test/tokens/early-refusal.long.test.ts',
    'a fresh access token that is refused as expired is renewed after 30 s, then after longer, and nobody waits half a life',
  ],
  [
    'a refresh token was called lost because its access token expired while the refusal was on its way',
    'test/tokens/early-refusal.long.test.ts',
    'a refusal that arrives after the expiry, of an exchange that was sent before it, leads to one exchange more',
  ],
  [
    'a misspelled RECRUITING_URL served the sandbox',
    'test/cli/mistakes.test.ts',
    'a misspelled RECRUITING_URL prevents the start, instead of serving the sandbox',
  ],
  [
    'an older Node ended with ERR_UNKNOWN_FILE_EXTENSION',
    'test/cli/older-node.test.ts',
    'a Node that is too old says which one is needed: %s',
  ],
  [
    'a refused preflight did not name CORS_ORIGINS',
    'test/http/origin/cors.test.ts',
    'it is logged once, with what to do, however often its pages send requests',
  ],
  [
    'an export wrote through a link that was planted beside its file',
    'test/export/files.test.ts',
    'a link that was planted at <output>%s is not followed',
  ],
  [
    'a formula behind a line feed, a space or a byte order mark was exported as it was',
    'test/export/csv-cells.test.ts',
    'whatever the text of a cell, a spreadsheet does not see a formula, and the text is all there',
  ],
  [
    'mutations of all callers shared one turn',
    'test/http/fairness.test.ts',
    'mutations of one caller neither delay nor displace those of another',
  ],
];

test.each(FAULTS)('%s: a test shows that it does not happen again', (_fault, file, title) => {
  expect(readFileSync(file, 'utf8')).toContain(title);
});
