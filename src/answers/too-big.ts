import type { TooBig } from '../errors.ts';
import type { Json } from '../json.ts';
import type { UpstreamError } from './answer-errors.ts';

/**
 * Returns what says that a request without data was too big. The GraphQL specification has no form for that. What is
 * recognized here are the codes and messages of graphql-java, graphql-ruby, graphql-php, Hot Chocolate, Absinthe,
 * gqlgen, async-graphql, graphql-query-complexity, graphql-cost-analysis, GraphQL Armor, Apollo Router, GitHub and
 * Shopify. A message about the depth of the operation, or about how often requests are sent, says nothing of records.
 */
export function tooBigIn(
  { data, errors }: { readonly data: Json | undefined; readonly errors: readonly UpstreamError[] },
  status: number,
): TooBig | undefined {
  if ((data && !data.isNull) || errors.length === 0) return undefined;
  const refusal = errors.find(isRefusalOfSize) ?? (status === 413 ? errors[0] : undefined);
  if (refusal) return { isSaid: true, share: shareIn(refusal), message: refusal.message };
  return status === 502 || status === 504
    ? { isSaid: false, message: errors[0]!.message }
    : undefined;
}

function isRefusalOfSize({ message, code, members }: UpstreamError): boolean {
  if (CODES.test(String(code)) || TYPES.test(members)) return true;
  const words = message.replaceAll(/https?:\S+/g, '');
  return SIZES.test(words) && EXCESS.test(words) && !OTHER_LIMITS.test(words);
}

/** `HC0047` and `HC0081` are of Hot Chocolate. */
const CODES =
  /^(?:HC0047|HC0081|.*(?:TOO_(?:COMPLEX|EXPENSIVE|LARGE|BIG)|(?:COMPLEXITY|COST|NODE)_(?:LIMIT_)?EXCEEDED|COST_LIMIT).*)$/;
/** Of GitHub, beside the message. */
const TYPES = /"type":"MAX_NODE_LIMIT_EXCEEDED"/;
const SIZES = /complex|\bcosts?\b|expensive|\bnodes\b|too (?:large|big|many (?:records|items))/i;
const EXCESS = /exceed|\btoo\b|\bover\b|more than|limit|maximum|\bmax\b/i;
const OTHER_LIMITS =
  /\bdepth\b|\brates?\b|throttl|too many requests|quota|per (?:second|minute|hour|day)\b/i;

/** A message or its extensions have the cost and the limit, in either order. */
function shareIn({ message, members }: UpstreamError): number | undefined {
  return shareOf(numbersIn(message)) ?? shareOf(numbersIn(members));
}

function numbersIn(text: string): readonly number[] {
  return Array.from(text.matchAll(NUMBER), ([number]) => Number(number.replaceAll(/[,_]/g, '')));
}

/** Not a part of a word such as HC0047. */
const NUMBER = /(?<![\w.])\d+(?:[,_]\d{3})*(?:\.\d+)?(?!\w)/g;

function shareOf([one = 0, other = 0]: readonly number[]): number | undefined {
  const share = Math.min(one, other) / Math.max(one, other);
  return share > 0 && share < 1 ? share : undefined;
}
