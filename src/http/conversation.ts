import type { Plugin } from 'graphql-yoga';
import type { Exchange, Reply, Stage } from './exchange.ts';

/** A request on its way through the plugins of Yoga, and the ways to answer it. */
export interface Conversation {
  readonly exchange: Exchange;
  /** Whether its answer is a stream. */
  streams: boolean;
  /** Whether others may read the request until it is answered. */
  isShared: boolean;
  /** The one that the gateway has made; undefined before. */
  response: Response | undefined;
  respond(reply: Reply): Promise<Response>;
  /** Answers what a stage threw. */
  refuse(error: unknown): Promise<Response>;
}

/** What Yoga passes to every hook that belongs to a request, and to resolvers. */
export interface ServerContext {
  /** A symbol, and its own property: Yoga copies the contexts of requests through `fetch`. */
  readonly [CONVERSATION]: Conversation;
}

const CONVERSATION = Symbol('conversation');

export type GatewayPlugin = Plugin<object, ServerContext>;

export function contextOf<More extends object>(
  conversation: Conversation,
  more: More,
): More & ServerContext {
  return { ...more, [CONVERSATION]: conversation };
}

/** @throws Error if a plugin has replaced the context of the request by one that was not made from it */
export function conversationIn(context: object): Conversation {
  const { [CONVERSATION]: conversation } = context as Partial<ServerContext>;
  if (!conversation) throw new Error('A plugin has replaced the context of a request.');
  return conversation;
}

/**
 * Makes a plugin of stages, one after the other: they run before anything of the request is parsed by Yoga or by other
 * plugins. One plugin for several, because each hook of Yoga has its cost.
 */
export function plugin(...stages: readonly Stage[]): GatewayPlugin {
  const stage = inTurn(stages);
  return {
    onRequest: ({ request, serverContext, endResponse }) => {
      const { [CONVERSATION]: conversation } = serverContext;
      // As Yoga would do it later, for resolvers.
      conversation.exchange.context ??= Object.assign(serverContext, { request });
      let reply: ReturnType<Stage>;
      try {
        reply = stage(conversation.exchange);
      } catch (error) {
        return conversation.refuse(error).then(endResponse);
      }
      if (reply === undefined) return undefined;
      if (!(reply instanceof Promise)) return conversation.respond(reply).then(endResponse);
      return reply.then(
        (given) => given && conversation.respond(given).then(endResponse),
        (error: unknown) => conversation.refuse(error).then(endResponse),
      );
    },
  };
}

/** Makes one stage of several. */
export function inTurn(stages: readonly Stage[]): Stage {
  const runFrom = (first: number, exchange: Exchange): ReturnType<Stage> => {
    for (let at = first; at < stages.length; at += 1) {
      const reply = stages[at]!(exchange);
      if (reply instanceof Promise) {
        return reply.then((given) => given ?? runFrom(at + 1, exchange));
      }
      if (reply) return reply;
    }
    return undefined;
  };
  return (exchange) => runFrom(0, exchange);
}
