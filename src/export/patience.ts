import type { Clock } from '../clock.ts';
import { GatewayFailure, type Gateway } from './gateway.ts';

/** A failure is final after this time without an answer or a new record. */
const PATIENCE_MS = 5 * 60_000;
const LONGEST_WAIT_S = 30;

/** Waits after failures, longer after each one in a row, until there was no progress for 5 minutes. */
export class Patience {
  readonly #clock: Clock;
  /** Seconds. */
  #nextWait = 1;
  #end = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.restart();
  }

  /** Call it when there was progress. */
  restart(): void {
    this.#nextWait = 1;
    this.#end = this.#clock.elapsed() + PATIENCE_MS;
  }

  /**
   * Waits for as long as the failure says, or else for the next longer time.
   *
   * @param onWait called with the seconds before the wait
   * @param atLeast seconds
   * @throws the failure if it is final; the abort reason of the signal
   */
  async waitAfter(
    failure: GatewayFailure,
    signal: AbortSignal,
    onWait: (seconds: number) => void,
    atLeast = 0,
  ): Promise<void> {
    const seconds = Math.max(failure.retryAfter ?? this.#nextWait, atLeast);
    if (this.#clock.elapsed() + seconds * 1000 > this.#end) throw failure;
    onWait(seconds);
    await this.#clock.sleep(seconds * 1000, signal);
    this.#nextWait = Math.min(2 * this.#nextWait, LONGEST_WAIT_S);
  }
}

interface PatienceOptions {
  readonly clock: Clock;
  /** Called before each wait. */
  readonly onWait: (failure: GatewayFailure, seconds: number) => void;
}

/** The same gateway, whose `ask` waits while the gateway cannot be reached. */
export function patientGateway(gateway: Gateway, { clock, onWait }: PatienceOptions): Gateway {
  return {
    ...gateway,
    ask: async (query, signal) => {
      const patience = new Patience(clock);
      for (;;) {
        try {
          return await gateway.ask(query, signal);
        } catch (error) {
          if (!(error instanceof GatewayFailure) || !error.isAway || error.isMistake) throw error;
          await patience.waitAfter(error, signal, (seconds) => onWait(error, seconds));
        }
      }
    },
  };
}
