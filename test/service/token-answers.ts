import type { ServerResponse } from 'node:http';
import type { Answer } from '../../sandbox/http.ts';
import { json } from './replies.ts';

/** A request to /oauth/token, and its outcome so far. */
export interface Exchange {
  readonly refreshToken: string;
  /**
   * - `not-processed`: the token was not looked at.
   * - `invalid-grant`: the token was not valid.
   * - `spent-in-silence`: the token is spent, and its client does not have the whole new pair.
   * - `answered`: the token is spent, and the whole answer was handed to the socket.
   */
  outcome: 'answered' | 'spent-in-silence' | 'invalid-grant' | 'not-processed';
}

/**
 * How one request to /oauth/token is answered. Replies that do not call `grant` leave it unprocessed.
 *
 * @param grant processes it, and returns the service's answer
 */
type TokenReply = (response: ServerResponse, grant: () => Promise<Answer>) => void | Promise<void>;

/** The token is exchanged, and the connection cut before any byte of an answer. */
export const cutAfterGrant: TokenReply = async (response, grant) => {
  await grant();
  response.destroy();
};

/** The token is exchanged, and the new pair is sent with status 500. */
export const grantedWithStatus500: TokenReply = async (response, grant) =>
  json((await grant()).body, 500)(response);

const granted: TokenReply = async (response, grant) => {
  const { status, body } = await grant();
  json(body, status)(response);
};

export interface Held {
  /** Resolves when the request has reached the point where it is held. */
  readonly arrived: Promise<void>;
  /** Resolves when the exchange is over: its client has left, if it is still held. */
  readonly left: Promise<void>;
  release(): void;
}

/** The replies to requests to come. */
export class TokenAnswers {
  readonly #next: TokenReply[] = [];

  /** One reply for each of the requests to come. */
  next(...replies: TokenReply[]): void {
    this.#next.push(...replies);
  }

  /** Stops one request to come, before or after it is processed, until it is released. */
  hold(when: 'before' | 'after'): Held {
    const [arrived, left, released] = [1, 2, 3].map(() => Promise.withResolvers<void>());
    this.next(async (response, grant) => {
      response.once('close', left!.resolve);
      const answer = when === 'after' ? await grant() : undefined;
      arrived!.resolve();
      await Promise.race([released!.promise, left!.promise]);
      if (!response.destroyed) await granted(response, async () => answer ?? grant());
    });
    return { arrived: arrived!.promise, left: left!.promise, release: released!.resolve };
  }

  take(): TokenReply {
    return this.#next.shift() ?? granted;
  }
}
