import {
  Kind,
  OperationTypeNode,
  visit,
  type DocumentNode,
  type OperationDefinitionNode,
} from 'graphql';
import type { SelectionScope } from '../../answers/collect-fields.ts';
import type { Payload } from '../../answers/write-answer.ts';
import { incrementalAsked } from '../../schema/incremental-directives.ts';
import type { Call } from '../call.ts';
import type { OperationAnswer } from '../output.ts';
import { planVariant } from './plan-variant.ts';
import { streamOperation } from './stream-operation.ts';
import { KeptVariants, type PlanParts, type Variant } from './variant.ts';

/** A compiled operation: made once, answered in every call. */
export interface OperationPlan {
  /** Answers in one piece. */
  answer(call: Call): Promise<OperationAnswer>;
  /** Answers in the parts that `@defer` and `@stream` ask for; undefined if their conditions are false in this call. */
  stream(call: Call): AsyncGenerator<Payload, void, undefined> | undefined;
}

export interface PlannedDocument {
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
}

/** @param grown called with the bytes of memory that the plan takes more than before */
export function planOperation(
  parts: PlanParts,
  { document, operation }: PlannedDocument,
  grown: (bytes: number) => void,
): OperationPlan {
  const fragments = new Map(
    document.definitions.flatMap((one) =>
      one.kind === Kind.FRAGMENT_DEFINITION ? [[one.name.value, one]] : [],
    ),
  );
  const conditions = conditionsOf(document);
  const decide = parts.inlining.decisions(document);
  const variants = new KeptVariants(parts.variantBytes, grown);
  const isQuery = operation.operation === OperationTypeNode.QUERY;
  const asksForIncremental = incrementalAsked(document);
  const variant = ({ variables: { values } }: Call, defers: boolean): Variant => {
    const decided = conditions.map((name) => conditionIn(values, name));
    const bits = decided.map((one) => (one === null ? 'n' : one ? '1' : '0')).join('');
    const outcome = bits + (defers ? 'd' : '');
    const name = decide ? `${outcome} ${decide(parts.schema, values)}` : outcome;
    const known = variants.get(name);
    if (known) return known;
    return variants.add(name, (grow) =>
      planVariant(parts, {
        operation,
        fragments,
        variables: outlineOf(values),
        condition: valueIn(new Map(conditions.map((one, i) => [one, decided[i]!]))),
        defers,
        hasNested: decide !== undefined,
        grow,
      }),
    );
  };
  return {
    answer: (call) => variant(call, false).answer(call),
    stream: (call) => {
      // `@defer` and `@stream` are ignored in a mutation.
      if (!isQuery || !asksForIncremental(call.variables.values)) return undefined;
      return streamOperation(variant(call, true), call);
    },
  };
}

/** Only the `if` of `@defer` and `@stream` may have no value. It is true by default. */
function conditionIn(values: Readonly<Record<string, unknown>>, name: string): boolean | null {
  const { [name]: value = true } = values;
  return value === null ? null : value !== false;
}

/** Created here, not in `planOperation`: a closure keeps everything alive that closures of the same scope refer to. */
function valueIn(conditions: ReadonlyMap<string, boolean | null>): SelectionScope['condition'] {
  return (name) => conditions.get(name) ?? null;
}

/**
 * Keeps what the sizes of inlined pages depend on, numbers, nulls and empty cursors, and replaces all other values:
 * variants are kept, and callers may send a megabyte of variables with each document.
 */
function outlineOf(values: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, isKept(value) ? value : true]),
  );
}

function isKept(value: unknown): boolean {
  return value === null || value === undefined || value === '' || typeof value === 'number';
}

/** Finds the variables that `@skip`, `@include` and the `if` of `@defer` and `@stream` depend on. */
function conditionsOf(document: DocumentNode): readonly string[] {
  const found = new Set<string>();
  visit(document, {
    Directive: ({ arguments: args = [] }) => {
      for (const { name, value } of args) {
        if (name.value === 'if' && value.kind === Kind.VARIABLE) found.add(value.name.value);
      }
    },
  });
  return [...found];
}
