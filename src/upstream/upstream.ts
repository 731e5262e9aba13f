import { authorize, type BearerTokens } from './authorize.ts';
import { breaker } from './breaker.ts';
import { openConnections, type ConnectionsParts } from './connections.ts';
import type { OutgoingRequest, Outcome, Sender, UpstreamAnswer } from './request.ts';
import { retry } from './retry.ts';
import { shareQueries } from './share.ts';
import type { UpstreamTelemetry } from './telemetry.ts';
import { createTurns, type Waiting } from './turns.ts';

/** The recruiting service's GraphQL endpoint. Every request to it goes through `send`. */
export interface Upstream {
  readonly send: SendToService;
  readonly waiting: Waiting;
  close(): Promise<void>;
}

/**
 * @throws coded errors, which callers of a shared request have in common, so that nobody may write into them; what the
 *   tokens throw; the abort reason of the sender's signal
 */
export type SendToService = (request: OutgoingRequest, sender: Sender) => Promise<UpstreamAnswer>;

interface UpstreamParts extends ConnectionsParts {
  readonly tokens: BearerTokens;
  readonly telemetry: UpstreamTelemetry;
}

export function openUpstream(parts: UpstreamParts): Upstream {
  const { tokens, clock, telemetry } = parts;
  const turns = createTurns(parts);
  const { post, close } = openConnections(parts);

  // A request takes its token and starts its timeout when its turn begins, because it is not sent before. Each retry waits
  // for another turn.
  const inTurns = retry(clock)(turns.inTurn(authorize(tokens, post)));
  const send = shareQueries(breaker(clock, telemetry)(inTurns));

  return {
    send: async (request, sender) => answerOf(await send(request, sender)),
    get waiting() {
      return turns.waiting;
    },
    close,
  };
}

/** @throws the error of a failure */
function answerOf(outcome: Outcome): UpstreamAnswer {
  if (outcome.kind === 'answer') return outcome;
  if (outcome.answer) return outcome.answer;
  throw outcome.error;
}
