import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import pino from 'pino';
import { codeOf } from '../../../src/errors.ts';
import type { AccessVerdict } from '../../../src/tokens/service/auth-check.ts';
import type { ExchangeOutcome, TokenEndpoint } from '../../../src/tokens/service/exchange.ts';
import { openRescue } from '../../../src/tokens/store/rescue.ts';
import { createSealer } from '../../../src/tokens/store/seal.ts';
import { createTokenKeeper, type TokenKeeper } from '../../../src/tokens/token-keeper.ts';
import type { TokenStore } from '../../../src/tokens/store/token-store.ts';
import { ManualClock } from '../random/manual-clock.ts';
import { quickFolder } from '../quick-folder.ts';

const BASE_URL = 'https://recruiting.test';
const LIFE_S = 86_400;

/** How the service answers an exchange. */
export type Oddity =
  'drop before' | 'drop after' | 'late' | 'not now' | 'unclear' | 'named' | 'unreachable';

interface Exchange {
  readonly refreshToken: string;
  /** The access token that it gave, if it was processed. */
  gave: string | undefined;
  /** Whether a living process received the answer. */
  received: boolean;
  /** Whether a living process received an answer that contains the pair but is not a grant. */
  named: boolean;
  /** By the world's clock. */
  readonly sentAt: number;
  /** Whether its process runs and still waits for the answer. */
  awaited: () => boolean;
}

/** The time in which no other process may send the same refresh token while the sender lives. */
const MARK_LIFE_MS = 150_000;

/** A recruiting service that counts how often every refresh token is used. It has no sockets, so that it is fast. */
export function modelService(clock: ManualClock, revokeOnRefresh: boolean) {
  const exchanges: Exchange[] = [];
  const violations: string[] = [];
  const live = new Set<string>();
  const expired = new Set<string>();
  const odd: Oddity[] = [];
  let issued = 0;
  let current = issue();

  function issue() {
    issued += 1;
    const pair = { accessToken: `access-${issued}`, refreshToken: `refresh-${issued}` };
    live.add(pair.accessToken);
    return pair;
  }

  function process(exchange: Exchange): ExchangeOutcome {
    if (exchange.refreshToken !== current.refreshToken) return { kind: 'invalid-grant' };
    if (revokeOnRefresh) live.clear();
    current = issue();
    exchange.gave = current.accessToken;
    const lives = { expiresIn: LIFE_S, refreshTokenExpiresIn: 120 * LIFE_S, name: 'Model' };
    return { kind: 'granted', grant: { ...current, ...lives } };
  }

  async function answer(exchange: Exchange): Promise<ExchangeOutcome> {
    const lost = { kind: 'uncertain', why: 'cut' } as const;
    switch (odd.shift()) {
      case 'drop before':
        return lost;
      case 'drop after':
        process(exchange);
        return lost;
      case 'late': {
        const outcome = process(exchange);
        await clock.sleep(100_000);
        return outcome;
      }
      case 'not now':
        return { kind: 'rate-limited', retryAfter: 5 };
      case 'named': {
        const outcome = process(exchange);
        if (outcome.kind !== 'granted') return outcome;
        const { accessToken: access_token, refreshToken: refresh_token } = outcome.grant;
        const body = Buffer.from(JSON.stringify({ upstream: { access_token, refresh_token } }));
        return { ...lost, answer: { status: 503, contentEncoding: undefined, body } };
      }
      case 'unclear':
        return { kind: 'uncertain', why: 'status 500' };
      case 'unreachable':
      case undefined:
        return process(exchange);
    }
  }

  return {
    exchanges,
    violations,
    first: { ...current, expiresIn: LIFE_S, refreshTokenExpiresIn: 120 * LIFE_S, name: 'Model' },
    oddly: (oddity: Oddity) => void odd.push(oddity),
    honestly: () => void (odd.length = 0),
    expire: () => {
      for (const token of live) expired.add(token);
      live.clear();
    },
    connect: async (
      isRunning: () => boolean,
    ): Promise<TokenEndpoint & { last(): Exchange | undefined }> => {
      await setImmediate();
      if (odd[0] === 'unreachable') {
        odd.shift();
        throw new Error('connect ECONNREFUSED');
      }
      let last: Exchange | undefined;
      return {
        last: () => last,
        exchange: async (refreshToken, mayStillSend) => {
          if (!mayStillSend()) return { kind: 'unsent' };
          const before = exchanges.filter((one) => one.refreshToken === refreshToken);
          if (before.some(({ received }) => received)) violations.push(`${refreshToken} again`);
          const sentAt = clock.elapsed();
          const isFresh = (one: Exchange) => sentAt - one.sentAt < MARK_LIFE_MS;
          if (before.some((one) => one.awaited() && isFresh(one))) {
            violations.push(`${refreshToken} twice at once`);
          }
          let waits = true;
          const awaited = () => waits && isRunning();
          last = { refreshToken, gave: undefined, received: false, named: false, sentAt, awaited };
          exchanges.push(last);
          const outcome = await answer(last);
          await setImmediate();
          waits = false;
          return outcome;
        },
        close: async () => {},
      };
    },
    check: (token: string): AccessVerdict => {
      if (live.has(token)) return { kind: 'works' };
      return {
        kind: 'refused',
        detail: expired.has(token) ? 'token_expired' : 'token_revoked',
      };
    },
  };
}

export type ModelService = ReturnType<typeof modelService>;

type Failing = 'read' | 'claim' | 'save' | 'endAttempt';

/** One process, which can be stopped, woken and killed. */
export interface ModelProcess {
  readonly failing: Set<Failing>;
  freeze(): void;
  thaw(): void;
  /** Ends it between two turns of its event loop, as kill -9 does. */
  kill(): Promise<void>;
  /** Ends it as SIGTERM does. */
  stop(): Promise<void>;
  /** A request as the upstream makes it; returns the code of its error. */
  ask(): Promise<unknown>;
}

export interface CustodyWorld {
  readonly clock: ManualClock;
  readonly service: ModelService;
  readonly folder: string;
  start(): Promise<ModelProcess>;
  /** What is in the store now. */
  look(): Promise<unknown>;
  end(): Promise<void>;
}

/** @param openStore a connection of one more process to the store that all share */
export async function custodyWorld(
  openStore: (folder: string, clock: ManualClock) => () => TokenStore,
  revokeOnRefresh: boolean,
): Promise<CustodyWorld> {
  const clock = new ManualClock();
  const folder = quickFolder();
  const service = modelService(clock, revokeOnRefresh);
  const open = openStore(folder, clock);
  let pids = 0;

  const looker = open();
  const pair = service.first;
  await looker.import({ baseUrl: BASE_URL, pair, replica: 'test', after: null });

  return {
    clock,
    service,
    folder,
    start: () => startProcess({ clock, service, folder, store: open(), pid: (pids += 1) }),
    look: () => looker.read(),
    end: async () => {
      await looker.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

interface ProcessParts {
  clock: ManualClock;
  service: ModelService;
  folder: string;
  store: TokenStore;
  pid: number;
}

async function startProcess(parts: ProcessParts): Promise<ModelProcess> {
  const { clock, service, store, folder, pid } = parts;
  const failing = new Set<Failing>();
  const never = new Promise<never>(() => {});
  const death = Promise.withResolvers<undefined>();
  let isDead = false;
  let frozen: PromiseWithResolvers<void> | undefined;

  /** What the process waits for reaches it only while it runs. */
  async function turn<T>(work: () => Promise<T>): Promise<T> {
    await running();
    const settled = await work().then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    await running();
    if ('error' in settled) throw settled.error;
    return settled.value;
  }

  async function running(): Promise<void> {
    await frozen?.promise;
    // It may have been stopped again meanwhile.
    if (frozen) await running();
    if (isDead) await never;
  }

  const storing = <T>(method: Failing, work: () => Promise<T>) =>
    turn(async () => {
      if (failing.has(method)) throw new Error(`${method}: the disk is full`);
      return work();
    });
  const mortal: TokenStore = {
    ...store,
    read: () => storing('read', () => store.read()),
    claim: (claim) =>
      storing('claim', async () => {
        const claimed = await store.claim(claim);
        // A moment at which the process can be stopped, between the claim and the send.
        await setImmediate();
        return claimed;
      }),
    save: (pair) => storing('save', () => store.save(pair)),
    endAttempt: (attempt, ending) =>
      turn(async () => {
        if (!failing.has('endAttempt')) return store.endAttempt(attempt, ending);
        // The claim stays, and yet the right to exchange is released.
        await store.endAttempt(attempt, { ...ending, outcome: 'uncertain' });
        throw new Error('endAttempt: the disk is full');
      }),
  };
  const log = pino({ level: 'silent' });
  const owner = { host: 'model', pid, lives: () => true };
  const rescue = openRescue({ directory: folder, sealer: createSealer([]), owner }, log);
  const keeper: TokenKeeper = await createTokenKeeper({
    store: mortal,
    rescue,
    connect: async () => {
      const endpoint = await turn(() => service.connect(() => !isDead && !frozen));
      return {
        ...endpoint,
        exchange: async (refreshToken, mayStillSend) => {
          const outcome = await turn(() => endpoint.exchange(refreshToken, mayStillSend));
          if (outcome.kind === 'granted') endpoint.last()!.received = true;
          if (outcome.kind === 'uncertain' && outcome.answer) endpoint.last()!.named = true;
          return outcome;
        },
      };
    },
    checkAccess: (token) => turn(async () => service.check(token)),
    clock: {
      now: clock.now,
      elapsed: clock.elapsed,
      sleep: (ms, signal) => turn(() => clock.sleep(ms, signal)),
    },
    log,
    link: undefined,
    baseUrl: BASE_URL,
    replica: `model/${pid}`,
  });

  return {
    failing,
    freeze: () => void (frozen ??= Promise.withResolvers()),
    thaw: () => {
      frozen?.resolve();
      frozen = undefined;
    },
    kill: async () => {
      die();
      frozen?.resolve();
      frozen = undefined;
      await store.close();
    },
    stop: async () => {
      await keeper.stop();
      await rescue.close();
      die();
      await store.close();
    },
    ask: () =>
      Promise.race([
        askWith(keeper, service).then(
          () => undefined,
          (error: unknown) => codeOf(error) ?? String(error),
        ),
        // The connections of its callers end with it.
        death.promise,
      ]),
  };

  function die(): void {
    isDead = true;
    // Not before callers whose answer has arrived have received it.
    void setImmediate().then(() => death.resolve(undefined));
  }
}

async function askWith(keeper: TokenKeeper, service: ModelService): Promise<void> {
  let token = await keeper.accessToken();
  for (let replays = 0; replays < 3; replays += 1) {
    await setImmediate();
    const verdict = service.check(token.value);
    if (verdict.kind === 'works') return keeper.accepted(token);
    const detail = verdict.kind === 'refused' ? verdict.detail : '';
    const next = await keeper.afterRefusal(token, detail);
    if (!next) throw new Error('UPSTREAM_UNAUTHORIZED');
    token = next;
  }
  throw new Error('UPSTREAM_UNAUTHORIZED');
}

/** The pairs in the rescue files of a folder. */
export function rescuedIn(folder: string): string {
  return readdirSync(folder)
    .filter((name) => name.startsWith('rescue-'))
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('\n');
}

/** The content of the answers in a folder, which are not sealed here. */
export function answeredIn(folder: string): string {
  return readdirSync(folder)
    .filter((name) => name.startsWith('answer-'))
    .map((name) => readFileSync(join(folder, name), 'utf8').trim())
    .filter((text) => text !== '')
    .map((text) => (JSON.parse(text) as { answer: string }).answer.replace(/^plain:/, ''))
    .map((text) => Buffer.from((JSON.parse(text) as { body: string }).body, 'base64').toString())
    .join('\n');
}
