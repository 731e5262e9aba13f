import { GraphQLError } from 'graphql';
import { OperatorError, OperatorMistake, type ErrorCode, type ForCallers } from '../errors.ts';
import { within, type Clock } from '../clock.ts';
import type { PageReport } from '../page-ledger.ts';
import type { AccessToken } from '../tokens/held-tokens.ts';

/** The requests between the two processes, with the types of their arguments and answers. */
interface Requests {
  /** To the primary. A worker requests its start itself, because it would miss reports sent before it listens. */
  readonly start: { readonly argument: null; readonly answer: WorkerStart };
  readonly tokens: { readonly argument: null; readonly answer: SharedTokenState };
  readonly accessToken: { readonly argument: null; readonly answer: AccessToken };
  readonly afterRefusal: {
    readonly argument: { readonly refused: AccessToken; readonly detail: string };
    readonly answer: AccessToken | undefined;
  };
  /** To the primary, which ends with this failure if the worker is one of the first. */
  readonly failed: { readonly argument: StartFailure; readonly answer: null };
  readonly takePages: { readonly argument: PageReport; readonly answer: readonly number[] };
  /** To a worker. */
  readonly metrics: { readonly argument: null; readonly answer: object[] };
  /** To either: shows that its event loop is running. Answered as soon as it has the channel. */
  readonly alive: { readonly argument: null; readonly answer: null };
}

/**
 * Timeouts of requests, ms. The primary itself waits up to 30 s for newer tokens, and a process that is stopped for less
 * than that must not be given up.
 */
const LIMITS: Record<keyof Requests, number> = {
  start: 60_000,
  tokens: 60_000,
  accessToken: 40_000,
  afterRefusal: 40_000,
  failed: 10_000,
  takePages: 10_000,
  // Prometheus waits for 10 s by default.
  metrics: 3_000,
  alive: 30_000,
};

/** Messages without an answer. */
interface Reports {
  /** To a worker, after each change. */
  readonly tokens: SharedTokenState;
  /** To the primary: the service accepted this token. */
  readonly accepted: AccessToken;
  /** To the primary: the service refused this token although it has not expired. */
  readonly refused: AccessToken;
  /** To the primary: the worker answers requests at this address. */
  readonly serving: { readonly url: string };
}

interface WorkerStart {
  readonly recruitingUrl: string;
  /** Whether the worker does what only one process has to do, such as comparing the live schema with the snapshot. */
  readonly isFirst: boolean;
}

/** Why a worker cannot start. */
interface StartFailure {
  readonly message: string;
  /** Whether the operator has to correct something. */
  readonly isMistake: boolean;
}

export interface SharedTokenState {
  readonly present: boolean;
  readonly set: string | undefined;
  /** Undefined while requests cannot be sent. */
  readonly token: AccessToken | undefined;
  /** Whether the service refuses the token, as far as any worker knows. */
  readonly unauthorized: boolean;
}

/** The common part of `Worker` of `node:cluster` in the primary and in a worker. */
interface Port {
  send(message: Message, callback: (error: Error | null) => void): unknown;
  on(event: 'message', listener: (message: Message) => void): unknown;
  on(event: 'disconnect', listener: () => void): unknown;
}

type Message =
  | { readonly report: keyof Reports; readonly value: unknown }
  | { readonly request: keyof Requests; readonly id: number; readonly argument: unknown }
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: SentError };

/** The callers of a worker get the error of the primary as if it were its own. */
interface SentError {
  readonly message: string;
  /** Undefined unless it is a GraphQLError. */
  readonly extensions: Record<string, unknown> | undefined;
  /** Undefined unless the message is for the operator. */
  readonly forCallers: ForCallers | undefined;
  /** Whether the operator has to correct something before the gateway can start. */
  readonly isMistake: boolean;
}

type Handler = (value: never) => unknown;

/** The other process, with typed requests and reports in both directions. */
export class Channel {
  readonly #port: Port;
  readonly #other: string;
  readonly #clock: Clock;
  readonly #waiting = new Map<number, PromiseWithResolvers<never>>();
  readonly #answers = new Map<keyof Requests, Handler>([['alive', async () => null]]);
  readonly #reports = new Map<keyof Reports, Handler>();
  #requests = 0;
  #hasEnded = false;

  /** @param other the name of the other process in errors */
  constructor(port: Port, other: string, clock: Clock) {
    this.#port = port;
    this.#other = other;
    this.#clock = clock;
    port.on('message', (message) => this.#receive(message));
    port.on('disconnect', () => {
      this.#hasEnded = true;
      for (const { reject } of this.#waiting.values()) reject(new Error(ENDED));
    });
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /**
   * @param limitMs the timeout; default: `LIMITS`
   * @throws the GraphQL error of the other process; NoAnswerError if it does not answer in time; an Error once it has
   *   ended
   */
  async request<Name extends keyof Requests>(
    request: Name,
    argument: Requests[Name]['argument'],
    limitMs = LIMITS[request],
  ): Promise<Requests[Name]['answer']> {
    if (this.#hasEnded) throw new Error(ENDED);
    const reply = Promise.withResolvers<never>();
    const id = (this.#requests += 1);
    this.#waiting.set(id, reply);
    this.#send({ request, id, argument });
    try {
      return await within(this.#clock, reply.promise, () => limitMs, this.#other);
    } finally {
      // A late answer is ignored.
      this.#waiting.delete(id);
    }
  }

  answer<Name extends keyof Requests>(
    name: Name,
    makeAnswer: (argument: Requests[Name]['argument']) => Promise<Requests[Name]['answer']>,
  ): void {
    this.#answers.set(name, makeAnswer);
  }

  report<Name extends keyof Reports>(report: Name, value: Reports[Name]): void {
    this.#send({ report, value });
  }

  onReport<Name extends keyof Reports>(name: Name, take: (report: Reports[Name]) => void): void {
    this.#reports.set(name, take);
  }

  #receive(message: Message): void {
    if ('report' in message) this.#reports.get(message.report)?.(message.value as never);
    else if ('request' in message) void this.#answer(message);
    else if ('error' in message) this.#waiting.get(message.id)?.reject(received(message.error));
    else this.#waiting.get(message.id)?.resolve(message.value as never);
  }

  async #answer({ request, id, argument }: Extract<Message, { request: unknown }>): Promise<void> {
    try {
      this.#send({ id, value: await this.#answers.get(request)!(argument as never) });
    } catch (error) {
      const { message } = error as Error;
      const extensions = error instanceof GraphQLError ? error.extensions : undefined;
      const forCallers = error instanceof OperatorError ? error.forCallers : undefined;
      const isMistake = error instanceof OperatorMistake;
      this.#send({ id, error: { message, extensions, forCallers, isMistake } });
    }
  }

  /** Ignores that the other process can no longer receive anything. */
  #send(message: Message): void {
    if (!this.#hasEnded) this.#port.send(message, () => {});
  }
}

const ENDED = 'The other process of the gateway has ended.';

function received({ message, extensions, forCallers, isMistake }: SentError): Error {
  if (isMistake) return new OperatorMistake(message);
  if (forCallers) return new OperatorError(extensions?.['code'] as ErrorCode, message, forCallers);
  return extensions ? new GraphQLError(message, { extensions }) : new Error(message);
}
