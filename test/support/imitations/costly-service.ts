import {
  getOperationAST,
  Kind,
  parse,
  type FieldNode,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import { honest, json, type Received, type Reply } from './fake-upstream.ts';

/** A limit that a test can change while lists are read, and what happened to the requests. */
export interface Costs {
  /** The highest cost that is accepted. */
  max: number;
  /** How a request above it is answered. */
  refuse: (cost: number, max: number) => Reply;
  /** How all other requests are answered. */
  answer: Reply;
  /** `first` of each request that was accepted; null where it had none. */
  readonly accepted: (number | null)[];
  readonly refused: (number | null)[];
}

/**
 * Refuses requests that cost too much before it executes them, as services do: a field costs 1, and each field
 * of a record as much for each record of the page.
 */
export function costlyService(
  max: number,
  refuse: Costs['refuse'] = graphqlJava,
): Costs & { readonly reply: Reply } {
  const costs: Costs & { reply: Reply } = {
    max,
    refuse,
    answer: honest,
    accepted: [],
    refused: [],
    reply: (response, received, sandbox) => {
      const { cost, first } = costOf(received);
      if (cost <= costs.max) {
        costs.accepted.push(first);
        return costs.answer(response, received, sandbox);
      }
      costs.refused.push(first);
      return costs.refuse(cost, costs.max)(response, received, sandbox);
    },
  };
  return costs;
}

/** The message of graphql-java. */
const graphqlJava: Costs['refuse'] = (cost, max) =>
  json({ errors: [{ message: `maximum query complexity exceeded ${cost} > ${max}` }] });

const PAGE = 50;

/** What a request costs, and the `first` of its outermost list. */
export function costOf({ body }: Received): { cost: number; first: number | null } {
  const { query, variables = {} } = JSON.parse(body) as {
    query: string;
    variables?: Record<string, unknown>;
  };
  const document = parse(query);
  const fragments = new Map(
    document.definitions.flatMap((one) =>
      one.kind === Kind.FRAGMENT_DEFINITION ? [[one.name.value, one.selectionSet]] : [],
    ),
  );
  let outermost: number | null | undefined;
  const operation: OperationDefinitionNode = getOperationAST(document)!;
  return { cost: costOfAll(operation.selectionSet), first: outermost ?? null };

  function costOfAll({ selections }: SelectionSetNode): number {
    return selections.reduce((sum, selection) => {
      if (selection.kind === Kind.FIELD) return sum + costOfField(selection);
      const below =
        selection.kind === Kind.INLINE_FRAGMENT
          ? selection.selectionSet
          : fragments.get(selection.name.value)!;
      return sum + costOfAll(below);
    }, 0);
  }

  function costOfField({ arguments: args = [], selectionSet }: FieldNode): number {
    if (!selectionSet) return 1;
    const items = selectionSet.selections.flatMap((one) =>
      one.kind === Kind.FIELD && one.name.value === 'items' ? [one.selectionSet!] : [],
    );
    if (items.length === 0) return 1 + costOfAll(selectionSet);
    const first = args.find(({ name }) => name.value === 'first')?.value;
    const given =
      first?.kind === Kind.VARIABLE
        ? (variables[first.name.value] as number | undefined)
        : first?.kind === Kind.INT
          ? Number(first.value)
          : undefined;
    outermost ??= given ?? null;
    const of = items.reduce((sum, one) => sum + costOfAll(one), 0);
    return 1 + Math.min(given ?? PAGE, PAGE) * of;
  }
}
