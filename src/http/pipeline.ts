import { isDeepStrictEqual } from 'node:util';
import {
  GraphQLError,
  isObjectType,
  print,
  specifiedRules,
  validate,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  type GraphQLSchema,
  type ValidationRule,
} from 'graphql';
import type { GraphQLParams, Plugin } from 'graphql-yoga';
import { OperatorMistake } from '../errors.ts';
import type { CheckedOperation } from '../operations/operations.ts';
import { missingNeeds, missingScope, type OperationPlan } from '../plans/planner.ts';
import type { RequestMemory } from '../memory/byte-limit.ts';
import { conversationIn, inTurn, plugin, type GatewayPlugin } from './handler.ts';
import type { Delivery, Results } from './delivery.ts';
import type { ErrorPolicy } from './error-policy.ts';
import {
  type Exchange,
  type Reply,
  type Stage,
  type Stages,
  bytesOf,
  noMemory,
} from './exchange.ts';

/*
 * Two ways from a checked operation to its answer
 *
 *                    read ── parse ── validate ── others' onRequest ──┬── prepare ── answer ──────> bytes
 *   onRequest of     body    find     limits,                         │   variables  its plan
 *   our plugins              the      scopes,                         │
 *                            document validation                      │ some plugin has a later hook
 *                                                                     v
 *   Yoga's hooks     setRequestParser   setParseFn   setValidationFn   setExecuteFn        setResultProcessor
 *                    what was read      what was     what was found,   prepare, and the    bytes, or what the
 *                                       found        others' rules     plan, as a result   plugins made of them
 *
 * The stages are the same, and run at the same time. Which way requests take is decided once, in `onYogaInit`, when all
 * plugins are known (`takesHooks`). If no plugin sees more than the request and the response, the plan answers in
 * `onRequest`. Otherwise what the stages have found out, or why they refused the request, is handed to the step of Yoga
 * where it belongs, so that the plugins of the operator see every step with its true values. What they change on the
 * way, parameters, variables or the document, goes through the same stages again.
 */

interface PipelineParts {
  /** The served schema. */
  readonly schema: GraphQLSchema;
  readonly memory: RequestMemory;
  /** The plugins of the operator. */
  readonly plugins: readonly Plugin[];
  /** Run before anything of the body is read. */
  readonly admit: Stages;
  /** Reads the parameters of the request. */
  readonly read: Stages;
  /** Finds the document of the parameters, without waiting. */
  readonly parse: Stages;
  /** Refuses documents, without waiting. */
  readonly validate: Stages;
  /** Runs before the operation is executed, without waiting. */
  readonly prepare: Stages;
  readonly delivery: Delivery;
  readonly errors: Pick<ErrorPolicy, 'refuse' | 'notAcceptable'>;
  /** Logs facts for the operator. */
  readonly warn: (message: string) => void;
}

/** Makes all plugins of Yoga: those of the gateway, with those of the operator among them. */
export function pipeline(parts: PipelineParts): readonly GatewayPlugin[] {
  const { schema, plugins, delivery, errors } = parts;
  const resolvers = plugins.length > 0 ? resolversOf(schema) : [];
  const answer: Stage = (exchange) => delivery.answer(exchange.operation as Planned, exchange);
  // The last stage is reached only if the caller accepts no format of an answer.
  const atOnce = inTurn([...parts.prepare, answer, errors.notAcceptable]);
  const passageParts = { ...parts, printed: printOnce() };
  const passageOf = (exchange: Passing): Passage =>
    (exchange[PASSAGE] ??= new Passage(exchange, passageParts));
  /** Whether a plugin of the operator has a hook after `onRequest`. Set in `onYogaInit`, before the first request. */
  let takesHooks = false;

  const step = (name: Refusal['step']): Stage => {
    const stage = inTurn(parts[name]);
    return (exchange) => {
      if (!takesHooks) return stage(exchange);
      if (exchange.refusal) return undefined;
      const refused = (error: unknown) => void (exchange.refusal = { step: name, error });
      try {
        const reply = stage(exchange);
        return reply instanceof Promise ? reply.catch(refused) : reply;
      } catch (error) {
        return refused(error);
      }
    };
  };
  const passageIn = (context: object) => passageOf(conversationIn(context).exchange);

  /** Before the plugins of the operator, which may replace or wrap what these hooks set. */
  const first: GatewayPlugin = {
    onSchemaChange: ({ schema: changed }) => {
      if (changed !== schema) throw new OperatorMistake(SCHEMA_REPLACED);
    },
    onParse: ({ context, setParseFn }) => {
      const { operationName } = context.params;
      setParseFn((source: string) => passageIn(context).parse(source, operationName));
    },
    onValidate: ({ context, setValidationFn }) => {
      const check: typeof validate = (served, document, rules) => {
        if (served !== schema) throw new OperatorMistake(SCHEMA_REPLACED);
        return passageIn(context).validate(document, rules);
      };
      setValidationFn(check);
    },
    onExecute: ({ context, setExecuteFn }) => {
      setExecuteFn((args: ExecutionArgs) => passageIn(context).execute(args));
    },
  };
  /** After the plugins of the operator, which can set neither: the body was read, and the gateway negotiates formats. */
  const last: GatewayPlugin = {
    onYogaInit: ({ yoga }) => {
      // Plugins may have added others.
      const all: readonly object[] = yoga.getEnveloped._plugins;
      takesHooks = all.slice(all.indexOf(first) + 1, all.indexOf(last)).some(hasLaterHook);
      const resolversNow = resolversOf(schema);
      if (resolvers.some((resolver, i) => resolver !== resolversNow[i])) parts.warn(WRAPPED);
    },
    onRequestParse: ({ serverContext, setRequestParser }) => {
      const conversation = conversationIn(serverContext);
      conversation.isShared = true;
      const params = passageOf(conversation.exchange).read();
      setRequestParser(() => params);
    },
    onResultProcess: ({ serverContext, setResultProcessor }) => {
      const conversation = conversationIn(serverContext);
      setResultProcessor(async (result) => {
        const passage = passageOf(conversation.exchange);
        return conversation.respond(await passage.replyOf(result as Results));
      }, 'application/json');
    },
  };
  const checks = [...parts.admit, step('read'), step('parse'), step('validate')];
  if (plugins.length === 0) return [plugin(...checks, atOnce)];
  return [
    plugin(...checks),
    first,
    ...(plugins as readonly object[] as readonly GatewayPlugin[]),
    last,
    plugin((exchange) => (takesHooks ? undefined : atOnce(exchange))),
  ];
}

type Planned = CheckedOperation<OperationPlan>;

/** Why a request was refused, and the step of Yoga to which this belongs. */
type Refusal = NonNullable<Exchange['refusal']>;

interface PassageParts extends PipelineParts {
  readonly printed: (document: DocumentNode) => string;
}

interface Passing extends Exchange {
  [PASSAGE]?: Passage;
}

const PASSAGE = Symbol('passage');

/** One request on its way through Yoga's hooks. */
class Passage {
  readonly #exchange: Exchange;
  readonly #parts: PassageParts;
  /** The parameters by which the operation was found. */
  #query: unknown;
  #operationName: unknown;
  /** The document of the operation, as other plugins know it. */
  #document: DocumentNode | undefined;
  /** The `extensions.http` of each error that was thrown: plugins of Yoga add theirs to those without one. */
  readonly #http = new Map<unknown, object | undefined>();

  constructor(exchange: Exchange, parts: PassageParts) {
    this.#exchange = exchange;
    this.#parts = parts;
  }

  /** Returns the parameters that were read. */
  read(): GraphQLParams {
    const { refusal, params } = this.#exchange;
    if (refusal?.step === 'read') throw this.#known(refusal.error);
    const { query, operationName, variables, extensions } = params;
    const { memory } = this.#parts;
    // The context of the request has them, for every hook and resolver.
    const bytes = bytesOf([variables, extensions]);
    if (!this.#exchange.hold(bytes, memory)) throw new Replied(noMemory(this.#exchange, memory));
    // A part of an address would keep the whole address alive, for as long as the document is kept.
    this.#query = this.#exchange.operation?.document.loc?.source.body ?? query;
    this.#operationName = operationName;
    return { query: this.#query, operationName, variables, extensions } as GraphQLParams;
  }

  /** Returns the document of the request, or finds the one of parameters that a plugin has changed. */
  parse(query: string, operationName: unknown): DocumentNode {
    if (query !== this.#query || operationName !== this.#operationName) {
      this.#find(query, operationName);
    }
    const { refusal, operation } = this.#exchange;
    if (refusal?.step === 'parse') throw this.#known(refusal.error);
    this.#document = operation!.document;
    return this.#document;
  }

  /** Returns the errors for which the document was refused, and errors by the rules that other plugins have added. */
  validate(
    document: DocumentNode,
    rules: readonly ValidationRule[] | undefined,
  ): readonly GraphQLError[] {
    this.#follow(document, this.#operationName);
    const { refusal } = this.#exchange;
    if (refusal) return errorsOf(this.#known(refusal.error));
    // Yoga adds all rules of the specification, by which the document was checked once for all requests.
    const others = rules?.filter((rule) => !SPECIFIED.has(rule)) ?? [];
    return others.length > 0 ? validate(this.#parts.schema, document, others) : [];
  }

  async execute(args: ExecutionArgs): Promise<Results> {
    const { document, operationName, variableValues, contextValue } = args;
    const exchange = this.#exchange;
    this.#follow(document, operationName);
    if (exchange.refusal) throw this.#known(exchange.refusal.error);
    const { writtenVariables: written } = exchange;
    exchange.params = { variables: variableValues };
    // Only variables that were read from a request have a text.
    if (written !== undefined && !isDeepStrictEqual(JSON.parse(written), variableValues)) {
      exchange.writtenVariables = undefined;
    }
    this.#run(this.#parts.prepare);
    exchange.context = contextValue as object;
    const { delivery, errors } = this.#parts;
    const executed = delivery.execute(exchange.operation as Planned, exchange);
    if (!executed) throw new Replied(await errors.notAcceptable(exchange));
    const results = await executed;
    exchange.isExecuted = true;
    return results;
  }

  /** Makes the reply of results, also of those that plugins have made. */
  async replyOf(results: Results): Promise<Reply> {
    const exchange = this.#exchange;
    const { delivery, errors } = this.#parts;
    const hasData = Symbol.asyncIterator in results || 'data' in results;
    // A plugin may have kept this data for another caller.
    if (exchange.refusal && hasData) return errors.refuse(exchange, exchange.refusal.error);
    // Answers of this caller have an error at each field that it may not read, and caches keep none with errors.
    const [missing] = exchange.isExecuted || !hasData ? [] : missingNeedsOf(exchange);
    if (missing) return errors.refuse(exchange, missingScope(missing));
    const { errors: refused, extensions } = hasData ? {} : results;
    if (hasData || (exchange.isExecuted && refused?.length !== 0)) {
      return delivery.replyOf(results, exchange) ?? errors.notAcceptable(exchange);
    }
    for (const error of refused ?? []) {
      const { originalError } = error;
      if (originalError instanceof Replied) return originalError.reply;
      const http = this.#http.get(error);
      if (http) error.extensions['http'] = http;
      else if (this.#http.has(error)) delete error.extensions['http'];
    }
    return errors.refuse(exchange, errorOf(refused, exchange), extensions);
  }

  /** Finds the operation of a document that a plugin has changed, and checks it like any other. */
  #follow(document: DocumentNode, operationName: unknown): void {
    if (document === this.#document && isEqual(operationName, this.#operationName)) return;
    this.#find(this.#parts.printed(document), operationName);
    const { refusal } = this.#exchange;
    if (refusal?.step === 'parse') throw this.#known(refusal.error);
    this.#document = document;
  }

  /** Finds and checks another operation than the one that was sent. */
  #find(query: string, operationName: unknown): void {
    const exchange = this.#exchange;
    exchange.params = { ...exchange.params, query, operationName };
    exchange.operation = undefined;
    exchange.refusal = undefined;
    this.#query = query;
    this.#operationName = operationName;
    for (const step of ['parse', 'validate'] as const) {
      try {
        this.#run(this.#parts[step]);
      } catch (error) {
        exchange.refusal = { step, error };
        return;
      }
    }
  }

  #run(stages: Stages): void {
    for (const stage of stages) {
      const reply = stage?.(this.#exchange);
      if (reply) throw new Replied(reply as Reply);
    }
  }

  /** Remembers what Yoga's own plugins may change in an error. */
  #known(error: unknown): unknown {
    for (const each of error instanceof AggregateError ? error.errors : [error]) {
      if (!(each instanceof GraphQLError)) continue;
      const { http } = each.extensions as { http?: object };
      this.#http.set(each, http && { ...http });
    }
    return error;
  }
}

const SPECIFIED: ReadonlySet<ValidationRule> = new Set(specifiedRules);

/** Ends the pipeline with the reply of a stage. */
class Replied extends Error {
  readonly reply: Reply;

  constructor(reply: Reply) {
    super('Nothing was executed: the gateway has replied already.');
    this.reply = reply;
  }
}

/** Returns what fields of the operation need and the caller lacks. */
function missingNeedsOf({ operation, caller }: Exchange) {
  return operation ? missingNeeds(operation.scopedUses, caller) : [];
}

/** @throws errors that are not for callers */
function errorsOf(error: unknown): readonly GraphQLError[] {
  const all: readonly unknown[] = error instanceof AggregateError ? error.errors : [error];
  if (all.every((each) => each instanceof GraphQLError)) return all;
  throw error;
}

function errorOf(errors: ExecutionResult['errors'], { hasLeft }: Exchange): Error {
  if (!errors) return new Error('A plugin has made a result without data and without errors.');
  if (errors.length > 0) return new AggregateError(errors);
  // Yoga leaves out the errors of aborted work.
  return hasLeft
    ? new DOMException('The request was aborted.', 'AbortError')
    : new Error('A plugin has thrown an AbortError or a TimeoutError.');
}

function isEqual(name: unknown, other: unknown): boolean {
  return (name ?? undefined) === (other ?? undefined);
}

/** Prints a document once: a plugin that changes documents keeps them, as the gateway keeps those that it passes on. */
function printOnce(): (document: DocumentNode) => string {
  const texts = new WeakMap<DocumentNode, string>();
  return (document) => {
    let text = texts.get(document);
    if (text === undefined) texts.set(document, (text = print(document)));
    return text;
  };
}

/** Hooks that run before the answer is made, or after it: they see only the request and the response. */
const EARLY: ReadonlySet<string> = new Set([
  'constructor',
  'onRequest',
  'onResponse',
  'onDispose',
  'onPluginInit',
  'onYogaInit',
  'onSchemaChange',
]);

function hasLaterHook(other: object): boolean {
  const names: string[] = [];
  for (let of = other; of && of !== Object.prototype; of = Object.getPrototypeOf(of) as object) {
    names.push(...Object.getOwnPropertyNames(of));
  }
  return names.some((name) => !EARLY.has(name) && Reflect.get(other, name) !== undefined);
}

function resolversOf(schema: GraphQLSchema): readonly unknown[] {
  const objects = Object.values(schema.getTypeMap()).filter(isObjectType);
  return objects.flatMap((type) => Object.values(type.getFields()).map(({ resolve }) => resolve));
}

const WRAPPED =
  "A plugin wraps resolvers, but no resolver runs for the service's own fields. If it limits or protects fields by " +
  'that, as a rate limiter does, use one that adds validation rules or wraps the execution instead.';

const SCHEMA_REPLACED =
  'A plugin replaces the schema of the gateway, which then could not answer. ' +
  'Remove that plugin from gateway.config.ts, and add types and fields by its typeDefs, resolvers and subschemas.';
