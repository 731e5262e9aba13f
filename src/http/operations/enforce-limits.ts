import {
  GraphQLError,
  NoFragmentCyclesRule,
  NoUnusedFragmentsRule,
  parse,
  UniqueFragmentNamesRule,
  validate,
  type DocumentNode,
  type GraphQLSchema,
  type ParseOptions,
  type Source,
} from 'graphql';
import type { Plugin, YogaInitialContext } from 'graphql-yoga';
import { codedError } from '../../errors.ts';
import { excessOf, type Excess, type Limits } from './limits.ts';

/**
 * Refuses operations that are too much, before they are validated: validation is what a hostile one makes
 * expensive. Tokens are counted while the text is read, so that nothing of a huge one is kept.
 *
 * It is no validation rule: Yoga keeps the outcome of those for each document, whoever sends it next.
 */
export function enforceLimits(
  limits: Limits,
  isRouter: (request: Request) => boolean,
): Plugin<YogaInitialContext> {
  const known = new WeakMap<DocumentNode, readonly Excess[] | 'broken'>();
  return {
    onParse: ({ setParseFn }) => setParseFn(parseWithin(limits.maxTokens)),
    onValidate: ({ context, params, setResult }) => {
      const document = params.documentAST as DocumentNode;
      const excess = known.get(document) ?? excessOf(document, limits);
      known.set(document, excess);
      if (excess === 'broken') {
        setResult(validate(params.schema as GraphQLSchema, document, FRAGMENT_RULES));
        return;
      }
      const refused = isRouter(context.request)
        ? excess.filter(({ isRoutersWay }) => !isRoutersWay)
        : excess;
      if (refused.length > 0) throw tooComplex(refused.map(({ message }) => message).join(' '));
    },
  };
}

const FRAGMENT_RULES = [UniqueFragmentNamesRule, NoUnusedFragmentsRule, NoFragmentCyclesRule];

/** Parses as graphql-js does; too many tokens are a coded error. */
export function parseWithin(maxTokens: number) {
  return (source: string | Source, options?: ParseOptions): DocumentNode => {
    try {
      return parse(source, { ...options, maxTokens });
    } catch (error) {
      if (!(error instanceof GraphQLError && error.message.includes('tokens. Parsing aborted.'))) {
        throw error;
      }
      throw tooComplex(
        `The document has more than ${maxTokens} tokens (words, numbers, brackets), which is the most that is taken (MAX_TOKENS). Send values as variables, or split it into several.`,
      );
    }
  };
}

function tooComplex(message: string) {
  return codedError('OPERATION_TOO_COMPLEX', message, {
    // As for what validation refuses: `spec` leaves 200 to callers who accept application/json.
    extensions: { http: { status: 400, spec: true } },
  });
}
