/** The service and the line to it, in a process of their own. */
import process from 'node:process';
import { startService } from '../service/service.ts';
import { startFaultyLine } from '../support/imitations/hostile-sockets.ts';

/** What the token endpoint received so far. */
export interface UpstreamReport {
  readonly exchanges: number;
  readonly answered: number;
  /** Refresh tokens with more than one answered exchange. */
  readonly answeredTwice: number;
  /** Exchanges of a spent token, or exchanges that spent a token whose pair no process received. */
  readonly astray: number;
}

/** Long, so that no caller is without a token if a store cannot be written for some seconds. */
const LIFE_S = 120;
/** The lifetime that the gateway sees: it refreshes every 6 seconds. */
const SAID_LIFE_S = 9;

if (process.send) await main();

async function main(): Promise<void> {
  const sandbox = await startService({
    expiresIn: LIFE_S,
    persons: 137,
    // An access token that was replaced serves no caller.
    revokeOnRefresh: true,
  });
  sandbox.tokenAnswers.every(1, (json) => ({
    status: 200,
    body: JSON.stringify({ ...(JSON.parse(json) as object), expires_in: SAID_LIFE_S }),
  }));
  const line = await startFaultyLine(sandbox, {
    outageEvery: 20_000,
    outageMs: 6_000,
    hangMs: 1_500,
  });
  const report = (): UpstreamReport => {
    const answered = sandbox.exchanges.filter(({ outcome }) => outcome === 'answered');
    const tokens = new Set(answered.map(({ refreshToken }) => refreshToken));
    return {
      exchanges: sandbox.exchanges.length,
      answered: answered.length,
      answeredTwice: answered.length - tokens.size,
      astray: sandbox.exchanges.filter(({ outcome }) => /grant|silence/.test(outcome)).length,
    };
  };
  process.on('message', () => process.send!(report()));
  process.on('disconnect', () => process.exit());
  process.send!({ url: line.url, tokenLink: line.tokenLink });
}
