import {
  GraphQLError,
  isObjectType,
  specifiedRules,
  validate,
  type DocumentNode,
  type ExecutionArgs,
  type GraphQLSchema,
  type ValidationRule,
} from 'graphql';
import type { GraphQLParams, Plugin } from 'graphql-yoga';
import { OperatorMistake } from '../errors.ts';
import { aborted, type Answers } from './answers.ts';
import type { ErrorPolicy } from './error-policy.ts';
import { CALLER_LEFT, type Checks, type Exchange, type Reply, type Stages } from './exchange.ts';
import { conversationIn, inOrder, plugin, type GatewayPlugin } from './handler.ts';
import { isParts, type Results } from './results.ts';

/*
 * One list of stages, and two ways through it
 *
 *                  admit ── plugins' onRequest ── enter ──┬── read ── parse ── validate ── prepare ── answer ──> text
 *   onRequest      who,                           path,   │   body    document limits,     variables  its plan
 *                  from where                     method  │                    scopes
 *                                                         │ some plugin has a later hook
 *                                                         v
 *   Yoga's hooks                     setRequestParser  setParseFn  setValidationFn  setExecuteFn  setResultProcessor
 *                                    read              parse       validate         all of them   what plugins made of
 *                                                                  others' rules    again, plan   the result, as text
 *
 * Which way requests take is decided once, in `onYogaInit`, when all plugins are known. What a plugin changes on the way
 * (parameters, the document, variables, the result) goes through the same stages once more, so that it can neither get
 * more than the caller may have, nor send a kept answer to somebody who may not have it.
 */

interface LaneParts {
  /** The served schema. */
  readonly schema: GraphQLSchema;
  /** The plugins of the operator. */
  readonly plugins: readonly Plugin[];
  /** Runs before anything that plugins do. */
  readonly admit: Stages;
  /** Runs before the body is read. */
  readonly enter: Stages;
  /** Reads the parameters of the request. */
  readonly read: Stages;
  /** Finds the document of the parameters. */
  readonly parse: Checks;
  /** Refuses documents. */
  readonly validate: Checks;
  /** Runs before the operation is executed. */
  readonly prepare: Checks;
  readonly answers: Answers;
  readonly errors: Pick<ErrorPolicy, 'refuse'>;
  /** Logs facts for the operator. */
  readonly warn: (message: string) => void;
}

/** Makes all plugins of Yoga: those of the gateway, with those of the operator among them. */
export function lanes(parts: LaneParts): readonly GatewayPlugin[] {
  const { schema, plugins, answers, admit, enter, read } = parts;
  const checks = [...parts.parse, ...parts.validate, ...parts.prepare];
  const atOnce = [...enter, ...read, ...checks, answers.answer];
  if (plugins.length === 0) return [plugin(...admit, ...atOnce)];

  const resolvers = resolversOf(schema);
  const fast = plugin(...atOnce);
  const slow = plugin(...enter);
  const steps = stepsOf(parts);
  /** Whether a plugin of the operator has a hook after `onRequest`. Set in `onYogaInit`, before the first request. */
  let takesHooks = false;

  /** Before the plugins of the operator, which may replace or wrap what these hooks set. */
  const first: GatewayPlugin = {
    ...plugin(...admit),
    onSchemaChange: ({ schema: changed }) => {
      if (changed !== schema) throw new OperatorMistake(SCHEMA_REPLACED);
    },
    onParse: ({ context, setParseFn }) => {
      const { exchange } = conversationIn(context);
      const { operationName } = context.params;
      setParseFn((source: string) => steps.parse(exchange, source, operationName));
    },
    onValidate: ({ context, setValidationFn }) => {
      const { exchange } = conversationIn(context);
      const { operationName } = context.params;
      const check: typeof validate = (served, document, rules) => {
        if (served !== schema) throw new OperatorMistake(SCHEMA_REPLACED);
        return steps.validate(exchange, document, operationName, rules);
      };
      setValidationFn(check);
    },
    onExecute: ({ context, setExecuteFn }) => {
      const { exchange } = conversationIn(context);
      setExecuteFn((args: ExecutionArgs) => steps.execute(exchange, args));
    },
  };
  /** After the plugins of the operator, which can set neither: the gateway reads bodies and negotiates formats. */
  const last: GatewayPlugin = {
    onYogaInit: ({ yoga }) => {
      // Plugins may have added others.
      const all: readonly object[] = yoga.getEnveloped._plugins;
      takesHooks = all.slice(all.indexOf(first) + 1, all.indexOf(last)).some(hasLaterHook);
      const resolversNow = resolversOf(schema);
      if (resolvers.some((resolver, i) => resolver !== resolversNow[i])) parts.warn(WRAPPED);
    },
    onRequest: (request) => (takesHooks ? slow : fast).onRequest(request),
    onRequestParse: ({ serverContext, setRequestParser }) => {
      const { exchange } = conversationIn(serverContext);
      setRequestParser(() => steps.read(exchange));
    },
    onResultProcess: ({ serverContext, setResultProcessor }) => {
      const conversation = conversationIn(serverContext);
      setResultProcessor(
        async (result) =>
          conversation.respond(await steps.reply(conversation.exchange, result as Results)),
        'application/json',
      );
    },
  };
  return [first, ...(plugins as readonly object[] as readonly GatewayPlugin[]), last];
}

/** The stages as the steps of Yoga. */
function stepsOf({ schema, answers, errors, ...stages }: LaneParts) {
  const readParams = inOrder(stages.read);
  const thrown = new ThrownHttp();
  const find = (exchange: Exchange, query: unknown, operationName: unknown) => {
    exchange.params = { ...exchange.params, query, operationName };
    run(stages.parse, exchange);
  };
  /** Finds the operation of the document, which a plugin may have changed, and checks it. */
  const check = (exchange: Exchange, document: DocumentNode, operationName: unknown) => {
    const { operation } = exchange;
    const isSame =
      operation?.document === document && (operationName ?? operation.name) === operation.name;
    if (!isSame) find(exchange, document, operationName);
    run(stages.validate, exchange);
  };

  return {
    read: async (exchange: Exchange): Promise<GraphQLParams> => {
      try {
        await readParams(exchange);
      } catch (error) {
        throw thrown.keep(error);
      }
      return exchange.params as GraphQLParams;
    },

    parse: (exchange: Exchange, query: string, operationName: unknown): DocumentNode => {
      try {
        find(exchange, query, operationName);
      } catch (error) {
        throw thrown.keep(error);
      }
      return exchange.operation!.document;
    },

    /** Returns errors for which the document is refused, and errors by the rules that plugins have added. */
    validate: (
      exchange: Exchange,
      document: DocumentNode,
      operationName: unknown,
      rules: readonly ValidationRule[] = [],
    ): readonly GraphQLError[] => {
      try {
        check(exchange, document, operationName);
      } catch (error) {
        const all = errorsIn(thrown.keep(error));
        if (all.every((each) => each instanceof GraphQLError)) return all;
        throw error;
      }
      // Yoga adds all rules of the specification, by which the document was checked once for all requests.
      const others = rules.filter((rule) => !SPECIFIED.has(rule));
      return others.length > 0 ? validate(schema, document, others) : [];
    },

    execute: async (
      exchange: Exchange,
      { document, operationName, variableValues, contextValue }: ExecutionArgs,
    ): Promise<Results> => {
      try {
        check(exchange, document, operationName);
        exchange.params = { variables: variableValues };
        run(stages.prepare, exchange);
        exchange.context = contextValue as object;
        const results = await answers.execute(exchange);
        exchange.isExecuted = true;
        return results;
      } catch (error) {
        throw thrown.keep(error);
      }
    },

    /** Makes the reply of results, also of those that plugins have made. */
    reply: async (exchange: Exchange, results: Results): Promise<Reply> => {
      const hasData = isParts(results) || results.data !== undefined;
      const { errors: refusals, extensions } = isParts(results) ? {} : results;
      try {
        if (hasData && !exchange.isExecuted) {
          const { operation, params } = exchange;
          if (!operation) find(exchange, params['query'], params['operationName']);
          run(stages.validate, exchange);
        }
        if (hasData || (exchange.isExecuted && refusals?.length !== 0)) {
          return await answers.replyOf(results, exchange);
        }
      } catch (error) {
        return errors.refuse(exchange, error);
      }
      thrown.restore(refusals ?? []);
      return errors.refuse(exchange, refusalOf(refusals, exchange), extensions);
    },
  };
}

function run(checks: Checks, exchange: Exchange): void {
  for (const check of checks) check?.(exchange);
}

const SPECIFIED: ReadonlySet<ValidationRule> = new Set(specifiedRules);

function errorsIn(error: unknown): readonly GraphQLError[] {
  return error instanceof AggregateError ? error.errors : [error as GraphQLError];
}

/** What `extensions.http` of refusals was when they were thrown: Yoga's own plugins write into it. */
class ThrownHttp {
  readonly #known = new WeakMap<GraphQLError, object | undefined>();

  /** Call it with what a step of Yoga throws or returns. */
  keep(error: unknown): unknown {
    for (const each of errorsIn(error)) {
      if (!(each instanceof GraphQLError)) continue;
      const { http } = each.extensions as { readonly http?: object };
      this.#known.set(each, http && { ...http });
    }
    return error;
  }

  restore(errors: readonly GraphQLError[]): void {
    for (const error of errors) {
      if (!this.#known.has(error)) continue;
      const http = this.#known.get(error);
      if (http) error.extensions['http'] = http;
      else delete error.extensions['http'];
    }
  }
}

function refusalOf(errors: readonly GraphQLError[] | undefined, { hasLeft }: Exchange): unknown {
  if (!errors) return new Error('A plugin has made a result without data and without errors.');
  if (errors.length === 0) return hasLeft ? CALLER_LEFT : aborted();
  return new AggregateError(errors);
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
