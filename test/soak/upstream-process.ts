/** The service and the line to it, in a process of their own. Messages to it decide what goes wrong next. */
import process from 'node:process';
import { startService } from '../service/service.ts';
import type { Held, HoldPoint, TokenFault } from '../service/token-answers.ts';
import {
  CARRIED_PAIRS,
  namedInError,
  type RewrittenAnswer,
} from '../support/imitations/hostile-bytes.ts';
import { startFaultyLine } from '../support/imitations/hostile-sockets.ts';

export const NAMED_IN_ERROR = 'a 503 that names a pair';
export const DROPPED = 'dropped before it is processed';
/** What can be wrong with an answer to a refresh. */
export const ANSWERS = [...Object.keys(CARRIED_PAIRS), NAMED_IN_ERROR, DROPPED];

export type UpstreamOrder =
  | { readonly order: 'report' }
  /** The next request to the token endpoint is answered like this. */
  | { readonly order: 'answer'; readonly name: string }
  /** The next request to the token endpoint is held at this point, which the reply reports, and answered like that. */
  | { readonly order: 'hold'; readonly when: HoldPoint; readonly name?: string }
  | { readonly order: 'release' }
  /** The access tokens issued so far stop working, unless there were more exchanges than these. */
  | { readonly order: 'expire'; readonly ifExchanges: number };

/** What the token endpoint received so far. */
export interface UpstreamReport {
  readonly exchanges: number;
  readonly answered: number;
  /** Refresh tokens with more than one answered exchange. */
  readonly answeredTwice: number;
  /** Exchanges of a spent token, or exchanges that spent a token whose pair no process received. */
  readonly astray: number;
  /** The outcomes of the last exchanges. */
  readonly latest: readonly string[];
}

/** Long, so that no caller is without a token if a store cannot be written for some seconds. */
const LIFE_S = 120;
/** The lifetime that the gateway sees: it refreshes every 6 seconds. */
const SAID_LIFE_S = 9;

if (process.send) await main();

async function main(): Promise<void> {
  let ahead = 0;
  let held: Held | undefined;
  const sandbox = await startService({
    expiresIn: LIFE_S,
    persons: 137,
    // An access token that was replaced serves no caller.
    revokeOnRefresh: true,
    now: () => Date.now() + ahead,
  });
  const { tokenAnswers } = sandbox;
  tokenAnswers.every(
    1,
    shortLived((json) => ({ status: 200, body: json })),
  );
  const line = await startFaultyLine(sandbox, {
    outageEvery: 20_000,
    outageMs: 6_000,
    hangMs: 1_500,
  });
  const obey = async (order: UpstreamOrder) => {
    switch (order.order) {
      case 'report':
        return;
      case 'answer':
        return tokenAnswers.next(answerNamed(order.name));
      case 'hold':
        if (order.name !== undefined) tokenAnswers.next(answerNamed(order.name));
        held = tokenAnswers.hold(order.when);
        return held.arrived;
      case 'release':
        return held?.release();
      case 'expire':
        if (report().exchanges === order.ifExchanges) ahead += LIFE_S * 1000;
    }
  };
  const report = (): UpstreamReport => {
    const answered = sandbox.exchanges.filter(({ outcome }) => outcome === 'answered');
    const tokens = new Set(answered.map(({ refreshToken }) => refreshToken));
    return {
      exchanges: sandbox.exchanges.length,
      answered: answered.length,
      answeredTwice: answered.length - tokens.size,
      astray: sandbox.exchanges.filter(({ outcome }) => /grant|silence/.test(outcome)).length,
      latest: sandbox.exchanges.slice(-4).map(({ outcome }) => outcome),
    };
  };
  process.on('message', (order: UpstreamOrder) => {
    void obey(order).then(() => process.send!(report()));
  });
  process.on('disconnect', () => process.exit());
  process.send!({ url: line.url, tokenLink: line.tokenLink });
}

function answerNamed(name: string): TokenFault {
  if (name === DROPPED) return 'drop-before';
  return shortLived(name === NAMED_IN_ERROR ? namedInError : CARRIED_PAIRS[name]!);
}

function shortLived(rewrite: RewrittenAnswer): RewrittenAnswer {
  return (json) =>
    rewrite(JSON.stringify({ ...(JSON.parse(json) as object), expires_in: SAID_LIFE_S }));
}
