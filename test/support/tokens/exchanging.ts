/**
 * A process that exchanges its refresh token again and again, with the real parts, so that a test can kill it at any
 * moment. It prints the fingerprint of each refresh token as soon as it is kept somewhere.
 */
import { writeSync } from 'node:fs';
import process from 'node:process';
import pino from 'pino';
import { Agent } from 'undici';
import { systemClock } from '../../../src/clock.ts';
import { emergencyIn } from '../../../src/tokens/emergency.ts';
import { PLAIN_WORDING } from '../../../src/tokens/health.ts';
import { TokenHolder } from '../../../src/tokens/holder.ts';
import { openPostgresStore } from '../../../src/tokens/postgres.ts';
import { createSealer } from '../../../src/tokens/seal.ts';
import { tokenService } from '../../../src/tokens/service.ts';
import { openSqliteStore } from '../../../src/tokens/sqlite.ts';
import { fingerprintOf } from '../../../src/tokens/state.ts';

const [address, folder, serviceUrl] = process.argv.slice(2) as [string, string, string];
const sealer = createSealer([]);
const emergency = emergencyIn(folder, sealer);
const holder = new TokenHolder({
  store: address.startsWith('postgres:')
    ? openPostgresStore(address, sealer)
    : openSqliteStore(address, sealer),
  emergency: {
    ...emergency,
    put: (received, at) => {
      const isKept = emergency.put(received, at);
      if (isKept) say(`kept ${fingerprintOf(received.pair)}`);
      return isKept;
    },
  },
  service: tokenService({ baseUrl: serviceUrl, agent: 'test', http: new Agent() }),
  serviceUrl,
  by: `test/${process.pid}`,
  wording: PLAIN_WORDING,
  clock: systemClock,
  log: pino({ level: 'silent' }),
});
const state = await holder.look();
say(`found ${fingerprintOf(state!.pair)}`);
for (;;) await holder.exchange();

/** A kill right after it loses no line. */
function say(line: string): void {
  writeSync(1, `${line}\n`);
}
