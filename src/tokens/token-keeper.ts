import { createEndWarnings } from './end-warnings.ts';
import { isSamePair, lossOf, type Head } from './head.ts';
import { importSet, isInUse, knownTokenText } from './import-set.ts';
import { createRotation, type RotationParts } from './rotation.ts';
import { lostError, missingError, movedError } from './token-errors.ts';
import { TokenLinkError } from './service/token-link.ts';
import { boundStore } from './store/bounded-store.ts';
import type { TokenStore } from './store/token-store.ts';
import type { TokenPair } from './token-set.ts';
import { standingOf, type TokenStanding } from './token-standing.ts';

/*
 * How a single-use token survives a crash
 *
 * The service accepts a refresh token exactly once, and answers with the next pair. A pair that is received and then
 * forgotten is gone: only an administrator can make another. So at each moment one of three places knows where the
 * newest pair is: the store, the rescue file, or a claim in the store that says "a process may have sent this token".
 *
 *           connect       claim        send once       save        use
 *   ----------|------------|-------------|-------------|-----------|------>
 *    what a crash here leaves behind:
 *    nothing              |  the claim: the token may  |  the new pair, which
 *                         |  be spent (uncertain)      |  the next start reads
 *
 * Connect. DNS, TCP and TLS come first, so that the failures that are common happen before anything is at stake.
 *
 * Claim. One durable transaction records "attempt A may send the refresh token of generation n". The store refuses it
 * while another process holds a claim. If it cannot be written, nothing is sent.
 *
 * Send once. No retry, no redirect, and not after 25 seconds: a process that was suspended with its claim must not wake
 * up and send. The exchange belongs to the process; a caller that disconnects does not end it. All callers share it.
 *
 * Save before use. The pair is inserted even if the claim is no longer ours: one refresh token yields one pair, so it
 * cannot be a wrong one. If the store does not take it within a second, the pair goes to the rescue file, is used from
 * memory and is saved again until that works. The next start, and `tokens recover`, save what a rescue file holds.
 *
 * Uncertain. No clear answer came (time-out, reset, 5xx, or the process ended): the claim stays, and nothing is guessed.
 * Whatever bytes arrived are kept in the rescue folder, and searched for a pair. While the old access token
 * works, it is used; the refresh token is sent once more shortly before it expires, or at once if it does not work. A
 * 200 is saved as usual. `invalid_grant` means lost, after waiting for a pair that another process may still save.
 *
 * Who writes what. Only the holder of a claim sends. Any process may save a pair that was received, because saving the
 * same pair twice changes nothing and the generation only grows. Only the gateway and the commands that change the
 * tokens write rescue files and save from them; `tokens status` and `tokens check` write nothing. On an error, nothing
 * is deleted or overwritten. A store that was replaced by an older copy is given the newest pair before it is used.
 *
 * The steps are in exchange-attempt.ts, saving in pair-saver.ts, the next step after each result in rotation.ts.
 */

/** One bearer token, and which pair it belongs to. */
export interface AccessToken {
  readonly value: string;
  readonly set: string;
  readonly generation: number;
}

/** Keeps one token set alive: rotates it ahead of its expiry, and once when the service says it expired. */
export interface TokenKeeper {
  /** The newest access token. Waits for nothing but a first import. @throws TOKENS_MISSING */
  accessToken(): Promise<AccessToken>;
  /**
   * What to do after a 401 with `detail`: the token to replay with, or undefined when no other token
   * would help. Rotates when `refused` is the newest and has expired.
   * @throws the coded error of a rotation that failed
   */
  afterRefusal(refused: AccessToken, detail: string): Promise<AccessToken | undefined>;
  /** The service took this token: from now on its expiry is believed. */
  accepted(token: AccessToken): void;
  /** Whether a set was ever present. */
  readonly present: boolean;
  /** Names the set in use. */
  readonly set: string | undefined;
  /** How the tokens stand, for metrics. Asks nobody. */
  standing(): TokenStanding | undefined;
  /** Begins no further rotation, and waits until the pair of one under way is safe. */
  stop(): Promise<void>;
}

export interface TokenKeeperParts extends Omit<RotationParts, 'store'> {
  store: TokenStore;
  /** Read and imported when the store is empty or its set is lost. */
  link: TokenLink | undefined;
}

export interface TokenLink {
  readonly url: string;
  /** @throws TokenLinkError */
  read(): Promise<TokenPair>;
}

const LOOK_AGAIN_MS = 30_000;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 5 * 60_000;

/** @throws when the store cannot be read or belongs to another service: better not to start than to mix them */
export async function createTokenKeeper(given: TokenKeeperParts): Promise<TokenKeeper> {
  const parts = { ...given, store: boundStore(given.store, given.clock) };
  const { store, clock, log, baseUrl, link, random = Math.random } = parts;
  await parts.rescue?.saveInto(store, baseUrl);
  const stored = await store.read().catch((cause: unknown) => {
    throw new Error(
      `The token store (${store.description}) cannot be read: ${(cause as Error).message}. It was left as it is. ` +
        'When it is damaged, move it away and run `tokens recover`; when that finds no pair in a rescue file, import a new ' +
        'token with `tokens import <link>`.',
      { cause },
    );
  });
  // A store that was locked was opened only now.
  for (const notice of store.notices) log.warn(notice);
  const stopping = new AbortController();
  let stopped: Promise<void> | undefined;
  const rotation = createRotation(parts);
  const warnOfEnd = createEndWarnings(clock, log);
  if (stored) rotation.adopt(stored);
  if (!link) sayWhatIsMissing(rotation.head);

  // Requests wait for the first try alone: a link that cannot be reached would hold them for ever.
  const firstTry = importLink();
  const keeping = keep().catch((error: unknown) => {
    if (!stopping.signal.aborted) log.fatal({ err: error }, 'token rotation stopped');
  });

  return {
    accessToken: async () => {
      if (!rotation.head) await firstTry;
      if (!rotation.head) await rotation.lookAtStore();
      return tokenOf(head());
    },
    accepted: rotation.accepted,
    afterRefusal: async (refused, detail) => {
      if (isSamePair(head(), refused)) {
        await rotation.lookAtStore();
        // An exchange under way may be the very reason: some services end the old token with it.
        if (detail !== 'token_expired') await rotation.settled();
      }
      const newest = head();
      if (!isSamePair(newest, refused)) return tokenOf(newest);
      // Of such a set nothing else is to be said, whatever the service says of its access token.
      const hopeless = newest.movedTo !== null || lossOf(newest, clock) !== undefined;
      if (hopeless || newest.doubtful) return tokenOf(await rotation.rotate());
      if (detail !== 'token_expired') return undefined;
      // Never accepted, and refused as expired in its first half: rotating again would only loop.
      const age = clock.elapsed() - newest.bornAt;
      if (!newest.accepted && age < newest.pair.expiresIn * 500) return undefined;
      return tokenOf(await rotation.rotate());
    },
    get present() {
      return rotation.head !== undefined;
    },
    get set() {
      return rotation.head?.set;
    },
    standing: () => rotation.head && standingOf(rotation.head, rotation, clock),
    stop: () => (stopped ??= stop()),
  };

  async function stop(): Promise<void> {
    stopping.abort();
    await rotation.stop();
    await keeping;
  }

  function head(): Head {
    if (rotation.head) return rotation.head;
    throw missingError();
  }

  function sayWhatIsMissing(found: Head | undefined): void {
    const loss = found && lossOf(found, clock);
    if (!found) log.error({ trouble: 'missing' }, missingError().message);
    else if (found.movedTo !== null) {
      log.error({ trouble: 'moved' }, movedError(found.movedTo).message);
    } else if (loss) log.fatal({ trouble: 'lost' }, lostError(loss).message);
  }

  async function keep(): Promise<void> {
    const done = await firstTry;
    await Promise.all([importUntilDone(done), keepFresh()]);
  }

  /** Resolves to whether that was all there is to do. */
  async function importLink(): Promise<boolean> {
    if (!link) return true;
    try {
      const found = await store.read();
      if (isInUse(found, clock.now())) {
        log.warn({ store: store.description }, LINK_IGNORED);
        return true;
      }
      const [linkHost, service] = [new URL(link.url).host, new URL(baseUrl).host];
      const pair = await link.read();
      const outcome = await importSet(parts, pair, found);
      if (outcome.kind !== 'imported') {
        if (await isImportedElsewhere()) return true;
        if (outcome.kind === 'known') log.error({ linkHost }, knownTokenText(outcome));
        return outcome.kind === 'known';
      }
      rotation.adopt(outcome.stored);
      const { generation, fingerprint } = outcome.stored;
      const set = { tokenSet: pair.name, generation, fingerprint };
      log.info({ ...set, service, linkHost }, 'token set imported');
      return true;
    } catch (error) {
      if (await isImportedElsewhere().catch(() => false)) return true;
      if (error instanceof TokenLinkError) {
        log.error(error.passing ? `${error.message} It is tried again.` : error.message);
        return !error.passing;
      }
      log.error({ err: error }, 'the token set could not be imported');
      return false;
    }
  }

  /** Several gateways may start at once on one link: whoever comes late finds it spent, and the set in the store. */
  async function isImportedElsewhere(): Promise<boolean> {
    await rotation.lookAtStore();
    const found = rotation.head;
    if (!found || found.movedTo !== null || lossOf(found, clock)) return false;
    log.info({ generation: found.generation }, 'another process has imported a token set');
    return true;
  }

  async function importUntilDone(done: boolean): Promise<void> {
    for (let failures = 1; !done; failures += 1) {
      await clock.sleep(backoff(failures), stopping.signal);
      done = await importLink();
    }
  }

  async function keepFresh(): Promise<void> {
    for (let failures = 0; !stopping.signal.aborted;) {
      try {
        if (rotation.head) warnOfEnd(rotation.head);
        const wait = rotation.untilDue();
        if (wait <= 0) {
          await rotation.advance();
          failures = 0;
        } else {
          // Looks again often instead of sleeping long: a timer of 120 days fires at once, and one that was
          // set before the machine was suspended fires late.
          await clock.sleep(Math.min(wait, LOOK_AGAIN_MS), stopping.signal);
          await rotation.lookAtStore();
        }
      } catch (error) {
        if (stopping.signal.aborted) return;
        failures += 1;
        log.error({ err: error, failures }, 'the access token could not be rotated');
        // In doubt it is known when the next step is due, and waiting longer could miss it. Where it is due
        // already and fails, as on a full disk, it is tried with patience like everything else.
        const replay = rotation.untilReplay() ?? 0;
        const patience = backoff(failures);
        await clock.sleep(replay > 0 ? Math.min(replay, patience) : patience, stopping.signal);
      }
    }
  }

  function backoff(failures: number): number {
    const longest = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** (failures - 1));
    return longest * (0.5 + random() / 2);
  }
}

const LINK_IGNORED =
  'TOKEN_LINK is ignored: the token store holds a set that is in use. Remove TOKEN_LINK; to replace the set ' +
  'all the same, run `tokens import <link> --replace`.';

function tokenOf({ set, generation, pair }: Head): AccessToken {
  return { value: pair.accessToken, set, generation };
}
