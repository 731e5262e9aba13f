import type { Clock } from '../clock.ts';
import { GatewayFailure, type Gateway } from './gateway.ts';

/** A failure is final after this time without an answer or a new record. */
export const PATIENCE_MS = 5 * 60_000;

/** The seconds to wait after a failure, unless it says how long: more after each one in a row. */
export function nextWait(seconds: number): number {
  return Math.min(2 * seconds, LONGEST_WAIT_S);
}

const LONGEST_WAIT_S = 30;

interface PatienceOptions {
  readonly clock: Clock;
  /** Called before each wait. */
  readonly onWait: (failure: GatewayFailure, seconds: number) => void;
}

/** The same gateway, whose `ask` waits for one that cannot be reached now. */
export function patientGateway(gateway: Gateway, { clock, onWait }: PatienceOptions): Gateway {
  return {
    ...gateway,
    ask: async (query, signal) => {
      const patienceEnds = clock.elapsed() + PATIENCE_MS;
      for (let wait = 1; ; wait = nextWait(wait)) {
        try {
          return await gateway.ask(query, signal);
        } catch (error) {
          if (!(error instanceof GatewayFailure) || !error.isAway || error.isMistake) throw error;
          const seconds = error.retryAfter ?? wait;
          if (clock.elapsed() + seconds * 1000 > patienceEnds) throw error;
          onWait(error, seconds);
          await clock.sleep(seconds * 1000, signal);
        }
      }
    },
  };
}
