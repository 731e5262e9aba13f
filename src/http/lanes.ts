import {
  GraphQLError,
  specifiedRules,
  validate as graphqlValidate,
  type DocumentNode,
  type ExecutionArgs,
  type GraphQLSchema,
  type ValidationRule,
} from 'graphql';
import type { GraphQLParams, Plugin } from 'graphql-yoga';
import type { CallVariables } from '../engine/call.ts';
import type { Plan } from '../engine/plan.ts';
import { errorsThrown } from '../errors.ts';
import type { CheckedOperation } from '../operations/operations.ts';
import type { Answers, Ready } from './answers.ts';
import type { ErrorPolicy } from './error-policy.ts';
import { CALLER_LEFT, type Exchange, type Stages } from './exchange.ts';
import { exchangeIn, plugin, type GatewayPlugin } from './handler.ts';
import type { Asked, Checks } from './operation.ts';
import type { Params } from './params.ts';
import type { Reply } from './reply.ts';
import { respond } from './response.ts';
import { isParts, type Results } from './results.ts';

/*
 * One list of stages, and two ways through it
 *
 *                  admit ── plugins' onRequest ── enter ──┬── read ── parse ── validate ── prepare ── answer ──> text
 *   onRequest      who,                           path,   │   body    document limits,     variables  its plan
 *                  from where                     method  │                    scopes
 *                                                         │ if there are plugins
 *                                                         v
 *   Yoga's hooks                     setRequestParser  setParseFn  setValidationFn  setExecuteFn  setResultProcessor
 *                                    read              parse       validate         all of them   what plugins made of
 *                                                                  others' rules    again, plan   the result, as text
 *
 * What a plugin changes on the way (parameters, the document, variables, the result) goes through the same stages once
 * more, so that it can neither get more than the caller may have, nor send a kept answer to somebody who may not have it.
 */

interface LaneParts {
  /** The offered schema: what callers see, with what a company adds. */
  readonly schema: GraphQLSchema;
  /** The plugins of the operator. */
  readonly plugins: readonly Plugin[];
  /** Runs before anything that plugins do. */
  readonly admit: Stages;
  /** Runs before the body is read. */
  readonly enter: Stages;
  /** Reads the parameters of the request. */
  readonly read: (exchange: Exchange) => Promise<Params>;
  /** Refuses parameters, or replaces them. */
  readonly params: readonly ((exchange: Exchange, params: Params) => Params)[];
  /** Finds the operation of a text, or of a document that a plugin has made. */
  readonly parse: (
    exchange: Exchange,
    query: unknown,
    operationName: unknown,
  ) => CheckedOperation<Plan>;
  /** Refuses operations. */
  readonly validate: Checks;
  /** Makes the values of the variables that the operation declares. */
  readonly variables: (asked: Asked<Plan>, sent: unknown) => CallVariables;
  readonly answers: Answers;
  readonly errors: Pick<ErrorPolicy, 'refuse' | 'cutOff'>;
}

/** Makes all plugins of Yoga: those of the gateway, with those of the operator among them. */
export function lanes(parts: LaneParts): readonly GatewayPlugin[] {
  const { plugins, admit, enter, errors } = parts;
  const steps = stepsOf(parts);
  if (plugins.length === 0) return [plugin(errors, ...admit, ...enter, steps.all)];

  /** Before the plugins of the operator, which may replace or wrap what these hooks set. */
  const first: GatewayPlugin = {
    ...plugin(errors, ...admit),
    onParse: ({ context, setParseFn }) => {
      const exchange = exchangeIn(context);
      const { operationName } = context.params;
      setParseFn((source: string) => steps.parse(exchange, source, operationName));
    },
    onValidate: ({ context, setValidationFn }) => {
      const exchange = exchangeIn(context);
      const { operationName } = context.params;
      const check: typeof graphqlValidate = (_, document, rules) =>
        steps.validate(exchange, document, operationName, rules);
      setValidationFn(check);
    },
    onExecute: ({ context, setExecuteFn }) => {
      const exchange = exchangeIn(context);
      setExecuteFn((args: ExecutionArgs) => steps.execute(exchange, args));
    },
  };
  /** After the plugins of the operator, which can set neither: the gateway reads bodies and negotiates formats. */
  const last: GatewayPlugin = {
    ...plugin(errors, ...enter),
    onRequestParse: ({ serverContext, setRequestParser }) => {
      const exchange = exchangeIn(serverContext);
      setRequestParser(() => steps.read(exchange));
    },
    onResultProcess: ({ serverContext, setResultProcessor }) => {
      const exchange = exchangeIn(serverContext);
      setResultProcessor(
        async (result) =>
          respond(exchange, await steps.reply(exchange, result as Results), errors.cutOff),
        'application/json',
      );
    },
  };
  return [first, ...(plugins as readonly object[] as readonly GatewayPlugin[]), last];
}

/** The stages as the steps of Yoga, and all of them in one. */
function stepsOf({ schema, answers, errors, ...stages }: LaneParts) {
  /** As they were sent. */
  const paramsOf = new WeakMap<Exchange, Params>();
  /** Those for which a plan has made a result for plugins. */
  const executed = new WeakSet<Exchange>();

  const checkedParams = (exchange: Exchange, sent: Params): Params =>
    stages.params.reduce((params, check) => check(exchange, params), sent);
  const ready = (asked: Asked<Plan>, sent: unknown): Ready => ({
    ...asked,
    variables: stages.variables(asked, sent),
  });
  /** Finds the operation of a text, or of a document, which a plugin may have changed, and checks it. */
  const checked = (exchange: Exchange, query: unknown, name: unknown): Asked<Plan> => {
    const asked = { exchange, operation: stages.parse(exchange, query, name) };
    for (const check of stages.validate) check?.(asked);
    return asked;
  };

  return {
    /** In two steps, so that the parameters, which may be large, are not kept while the answer is awaited. */
    all: (exchange: Exchange): Promise<Reply> =>
      stages
        .read(exchange)
        .then((sent) => {
          const params = checkedParams(exchange, sent);
          const asked = checked(exchange, params['query'], params['operationName']);
          return ready(asked, params['variables']);
        })
        .then(answers.answer),

    read: async (exchange: Exchange): Promise<GraphQLParams> => {
      const params = checkedParams(exchange, await stages.read(exchange));
      paramsOf.set(exchange, params);
      return params as GraphQLParams;
    },

    parse: (exchange: Exchange, query: string, name: unknown): DocumentNode =>
      stages.parse(exchange, query, name).document,

    /** Returns errors for which the document is refused, and errors by the rules that plugins have added. */
    validate: (
      exchange: Exchange,
      document: DocumentNode,
      operationName: unknown,
      rules: readonly ValidationRule[] = [],
    ): readonly GraphQLError[] => {
      try {
        checked(exchange, document, operationName);
      } catch (error) {
        const all = errorsThrown(error);
        if (all.every((each) => each instanceof GraphQLError)) return all;
        throw error;
      }
      // Yoga adds all rules of the specification, by which the document was checked once for all requests.
      const others = rules.filter((rule) => !SPECIFIED.has(rule));
      return others.length > 0 ? graphqlValidate(schema, document, others) : [];
    },

    execute: async (exchange: Exchange, args: ExecutionArgs): Promise<Results> => {
      const { document, operationName, variableValues } = args;
      const asked = checked(exchange, document, operationName);
      const results = await answers.execute(ready(asked, variableValues));
      executed.add(exchange);
      return results;
    },

    /** Makes the reply of results, also of those that plugins have made. */
    reply: async (exchange: Exchange, results: Results): Promise<Reply> => {
      const isExecuted = executed.has(exchange);
      const hasData = isParts(results) || results.data !== undefined;
      const { errors: refusals, extensions } = isParts(results) ? {} : results;
      try {
        if (hasData && !isExecuted) {
          const { query, operationName } = paramsOf.get(exchange)!;
          const { operation } = checked(exchange, query, operationName);
          exchange.notes.operationType = operation.type;
        }
        if (hasData || (isExecuted && refusals?.length !== 0)) {
          return await answers.replyOf(results, exchange);
        }
      } catch (error) {
        return errors.refuse(exchange, error);
      }
      return errors.refuse(exchange, refusalOf(refusals, exchange), extensions);
    },
  };
}

const SPECIFIED: ReadonlySet<ValidationRule> = new Set(specifiedRules);

/** Yoga leaves out errors that say that work was aborted, as it is when the caller leaves. */
function refusalOf(errors: readonly GraphQLError[] = [], { hasLeft }: Exchange): unknown {
  if (errors.length > 0) return new AggregateError(errors);
  return hasLeft ? CALLER_LEFT : new Error('A plugin has made a result without data and errors.');
}
