import { Request as YogaRequest, Response as YogaResponse } from '@whatwg-node/fetch';
import {
  GraphQLError,
  specifiedRules,
  validate,
  type ExecutionArgs,
  type ExecutionResult,
  type GraphQLSchema,
  type ValidationRule,
} from 'graphql';
import { createYoga, type GraphQLParams, type Plugin } from 'graphql-yoga';
import { errorsThrown } from '../errors.ts';
import type { Answers } from './answers.ts';
import type { ErrorPolicy } from './error-policy.ts';
import { CALLER_LEFT, type Exchange, type Stage, type Stages } from './exchange.ts';
import { replyOfStages } from './handler.ts';
import type { OperationSteps, Params } from './operation.ts';
import { isPiece, withHeaders, type Body, type Piece, type Reply } from './reply.ts';
import { replyOf } from './results.ts';
import { bytesOf } from './send.ts';

/*
 * The way of requests. Without plugins of the operator, all stages run in one hook, onRequest, since nobody sees the other
 * steps, which cost as much as the rest of a page. With plugins they are the steps of Yoga:
 *
 *   onRequest          admit: who, from where  >  that of plugins  >  enter: path, method
 *   setRequestParser   params: the body
 *   setParseFn         find: the document
 *   setValidationFn    check: limits, scopes, validity; then rules of plugins
 *   setExecuteFn       all of these checks again, variables, the plan
 *   setResultProcessor what plugins made of the result, as text
 *
 * What a plugin changes on the way (parameters, the document, variables, the result) is checked once more, so that it
 * can neither get more than the caller may have, nor send a kept answer to somebody who may not have it.
 */

interface YogaParts {
  /** The offered schema: what callers see, with what a company adds. */
  readonly schema: GraphQLSchema;
  /** Those of the operator. */
  readonly plugins: readonly Plugin[];
  /** Runs before anything that plugins do. */
  readonly admit: Stages;
  /** Runs before the body is read. */
  readonly enter: Stages;
  readonly steps: OperationSteps;
  readonly answers: Answers;
  readonly errors: ErrorPolicy;
}

type GatewayPlugin = Plugin<object, ServerContext>;

/** A request on its way through Yoga. Weak maps of requests would double the time of garbage collection. */
interface Passage {
  readonly exchange: Exchange;
  /** What the gateway replies, which is not read from the response that plugins see. */
  own: { readonly reply: Reply; readonly response: Response } | undefined;
  /** Parameters as they were sent; undefined without plugins. */
  sent: Params | undefined;
  /** Whether a plan has made a result for plugins. */
  isExecuted: boolean;
}

/** The context that Yoga passes to every hook that belongs to a request, and to resolvers. */
interface ServerContext {
  /** Yoga copies the contexts of requests through `fetch`, with their symbols. */
  readonly [PASSAGE]: Passage;
}

const PASSAGE = Symbol('passage');

function passageIn(context: object): Passage {
  return (context as ServerContext)[PASSAGE];
}

/** Makes Yoga answer requests, with the stages of the gateway and the plugins of the operator. */
export function openYoga(parts: YogaParts) {
  const { schema, plugins, errors } = parts;
  const hasPlugins = plugins.length > 0;
  // Without what the plugins of the gateway do, or nothing does.
  const yoga = createYoga<ServerContext>({
    schema,
    plugins: hasPlugins ? aroundPlugins(parts) : [inOneHook(parts)],
    fetchAPI: { Request: UnparsedRequest },
    // Yoga cannot be created without the address of a probe, which would run before all plugins. No address ends so.
    healthCheckEndpoint: ' ',
    graphiql: false,
    landingPage: false,
    cors: false,
    multipart: false,
    batching: false,
    maxRequestBodySize: false,
    // It would keep errors alive, with everything on their stacks.
    parserAndValidationCache: false,
    logging: false,
    maskedErrors: false,
  });
  // Yoga is a proxy, and each access through it binds a function.
  const { handleNodeRequestAndResponse, handleRequest } = yoga;

  return {
    /** Never rejects. */
    answer: async (exchange: Exchange): Promise<Reply> => {
      const { node, fetched } = exchange;
      const passage: Passage = { exchange, own: undefined, sent: undefined, isExecuted: false };
      const context = { ...node, [PASSAGE]: passage };
      try {
        const response = node
          ? await handleNodeRequestAndResponse(node.req, node.res, context)
          : await handleRequest(fetched!, context);
        const reply = passage.own?.response === response ? passage.own.reply : undefined;
        if (reply && !hasPlugins) return reply;
        const { status } = response;
        const headers = headersOf(response);
        if (reply) return { status, headers, body: reply.body };
        const body = (response.body as ReadableStream<Uint8Array> | null) ?? undefined;
        return withHeaders(exchange.replyHeaders, { status, headers, body });
      } catch (error) {
        // Yoga would send the stacks of what plugins throw.
        return withHeaders(exchange.replyHeaders, errors.refuse(exchange, error));
      }
    },
    /** Lets plugins finish their work. */
    dispose: () => yoga.dispose(),
  };
}

function inOneHook(parts: YogaParts): GatewayPlugin {
  const { admit, enter, steps, answers } = parts;
  const operation: Stage = async (exchange) => {
    const { query, operationName, variables } = await steps.params(exchange);
    // Not awaited here, so that the parameters, which may be large, are not kept until then.
    return answers.reply(steps.ready(exchange, query, operationName, variables));
  };
  return { onRequest: onRequest(parts, [...admit, ...enter, operation]) };
}

function aroundPlugins(parts: YogaParts): GatewayPlugin[] {
  const { schema, plugins, admit, enter, steps, answers } = parts;
  /** Before the plugins of the operator, which may replace or wrap what these hooks set. */
  const first: GatewayPlugin = {
    onRequest: onRequest(parts, admit),
    onParse: ({ context, setParseFn }) => {
      const { exchange } = passageIn(context);
      const { operationName } = context.params;
      setParseFn((source: string) => steps.find(exchange, source, operationName).document);
    },
    onValidate: ({ context, setValidationFn }) => {
      const { exchange } = passageIn(context);
      const { operationName } = context.params;
      const check: typeof validate = (_, document, rules = []) => {
        const refusals = refusalsIn(() => steps.check(exchange, document, operationName));
        if (refusals.length > 0) return refusals;
        // Yoga adds all rules of the specification, by which the document was checked once for all requests.
        const others = rules.filter((rule) => !SPECIFIED.has(rule));
        return others.length > 0 ? validate(schema, document, others) : [];
      };
      setValidationFn(check);
    },
    onExecute: ({ context, setExecuteFn }) => {
      const passage = passageIn(context);
      setExecuteFn(async ({ document, operationName, variableValues }: ExecutionArgs) => {
        const ready = steps.ready(passage.exchange, document, operationName, variableValues);
        const result = await answers.execute(ready);
        passage.isExecuted = true;
        return result;
      });
    },
  };
  /** After the plugins of the operator, which can set neither: the gateway reads bodies and negotiates formats. */
  const last: GatewayPlugin = {
    onRequest: onRequest(parts, enter),
    onRequestParse: ({ serverContext, setRequestParser }) => {
      const passage = passageIn(serverContext);
      setRequestParser(async () => {
        passage.sent = await steps.params(passage.exchange);
        return passage.sent as GraphQLParams;
      });
    },
    onResultProcess: ({ serverContext, setResultProcessor }) => {
      const passage = passageIn(serverContext);
      setResultProcessor((result) => {
        const reply = replyOfResult(parts, passage, result as ExecutionResult);
        return responseOf(withHeaders(passage.exchange.replyHeaders, reply), passage, parts);
      }, 'application/json');
    },
  };
  return [first, ...(plugins as readonly object[] as readonly GatewayPlugin[]), last];
}

function onRequest(
  parts: Pick<YogaParts, 'errors' | 'plugins'>,
  stages: Stages,
): NonNullable<GatewayPlugin['onRequest']> {
  return async ({ request, serverContext, endResponse }) => {
    const passage = passageIn(serverContext);
    // As Yoga would make the context later.
    passage.exchange.context = Object.assign(serverContext, { request });
    const reply = await replyOfStages(stages, passage.exchange, parts.errors);
    if (reply) endResponse(responseOf(reply, passage, parts));
  };
}

/** Returns the errors for which a check refuses an operation. @throws every other error */
function refusalsIn(check: () => unknown): readonly GraphQLError[] {
  try {
    check();
    return [];
  } catch (error) {
    const all = errorsThrown(error);
    if (all.every((each) => each instanceof GraphQLError)) return all;
    throw error;
  }
}

const SPECIFIED: ReadonlySet<ValidationRule> = new Set(specifiedRules);

/** Makes the reply of a result, also of one that plugins have made. */
function replyOfResult(
  { steps, errors }: Pick<YogaParts, 'steps' | 'errors'>,
  { exchange, sent, isExecuted }: Passage,
  result: ExecutionResult,
): Reply {
  const { data, errors: refusals, extensions } = result;
  try {
    if (data !== undefined && !isExecuted) {
      const { query, operationName } = sent!;
      exchange.operationType = steps.check(exchange, query, operationName).type;
    }
    if (data !== undefined || (isExecuted && refusals?.length)) {
      const masked = refusals?.map((error) => errors.mask(error, exchange));
      return replyOf({ ...result, ...(masked && { errors: masked }) }, exchange);
    }
  } catch (error) {
    return errors.refuse(exchange, error);
  }
  return errors.refuse(exchange, refusalOf(refusals, exchange), extensions);
}

/** Yoga parses the address of every request, for hooks that read its parts. This defers it until a hook does. */
class UnparsedRequest extends YogaRequest {
  get parsedUrl(): undefined {
    return undefined;
  }
}

/** Yoga leaves out errors that say that work was aborted, as it is when the caller leaves. */
function refusalOf(errors: readonly GraphQLError[] = [], { hasLeft }: Exchange): unknown {
  if (errors.length > 0) return new AggregateError(errors);
  return hasLeft ? CALLER_LEFT : new Error('A plugin has made a result without data and errors.');
}

/** Makes the response of a reply, which nobody reads unless there are plugins. */
function responseOf(
  reply: Reply,
  passage: Passage,
  { plugins }: Pick<YogaParts, 'plugins'>,
): Response {
  const response = plugins.length > 0 ? forPlugins(reply) : new YogaResponse();
  passage.own = { reply, response };
  return response;
}

function forPlugins({ status, headers, body = '' }: Reply): Response {
  const content = isPiece(body) ? body : lazily(body);
  const init = { status, headers: headers as Record<string, string> };
  return new YogaResponse(content === '' ? null : (content as BodyInit), init);
}

/** A large body for plugins, most of which do not read it. Yoga joins only bytes. */
async function* lazily(body: AsyncIterable<Body> | readonly Piece[]) {
  for await (const part of body) yield Buffer.from(bytesOf(part) as Uint8Array);
}

function headersOf({ headers }: Response): Reply['headers'] {
  // A plugin that makes another body often copies the headers of the response that it has got.
  const { 'content-length': _, 'transfer-encoding': __, ...others } = Object.fromEntries(headers);
  const cookies = headers.getSetCookie();
  return { ...others, ...(cookies.length > 0 && { 'set-cookie': cookies }) };
}
