import {
  Kind,
  OperationTypeNode,
  visit,
  type DocumentNode,
  type OperationDefinitionNode,
} from 'graphql';
import type { SelectionScope } from '../../answers/collect-fields.ts';
import type { Payload, WholeAnswer } from '../../answers/write-answer.ts';
import { incrementalAsked } from '../../schema/incremental-directives.ts';
import { fragmentsOf } from '../../selections.ts';
import type { Call } from '../call.ts';
import { planVariant, type PlanParts } from './plan-variant.ts';
import { checkRootRules } from './root-rules.ts';
import { streamOperation } from './stream-operation.ts';
import type { Variant } from './variant.ts';

/** A compiled operation: made once, answered in every call. */
export interface OperationPlan {
  /** Answers in one piece. */
  answer(call: Call): Promise<WholeAnswer>;
  /** Answers in the parts that `@defer` and `@stream` ask for; undefined if their conditions are false in this call. */
  stream(call: Call): AsyncGenerator<Payload, void, undefined> | undefined;
}

export interface PlannedDocument {
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
}

/**
 * @param grown called with the bytes of memory that the plan takes more than before
 * @throws BAD_USER_INPUT, FORBIDDEN: see `checkRootRules`
 */
export function planOperation(
  parts: PlanParts,
  { document, operation }: PlannedDocument,
  grown: (bytes: number) => void,
): OperationPlan {
  const fragments = fragmentsOf(document);
  checkRootRules(parts, operation, fragments);
  const conditions = conditionsOf(document);
  const decide = parts.inlining.decisions(document);
  const variants = new KeptVariants(parts.variantBytes, grown);
  const isQuery = operation.operation === OperationTypeNode.QUERY;
  const asksForIncremental = incrementalAsked(document);
  const variant = ({ variables: { values } }: Call, defers: boolean): Variant => {
    const decided = conditions.map((name) => conditionIn(values, name));
    const bits = decided.map((value) => (value === null ? 'n' : value ? '1' : '0')).join('');
    const outcome = bits + (defers ? 'd' : '');
    const name = decide ? `${outcome} ${decide(parts.schema, values)}` : outcome;
    const known = variants.get(name);
    if (known) return known;
    return variants.add(name, (grow) =>
      planVariant(parts, {
        operation,
        fragments,
        variables: outlineOf(values),
        condition: valueIn(new Map(conditions.map((condition, i) => [condition, decided[i]!]))),
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
  const names = new Set<string>();
  visit(document, {
    Directive: ({ arguments: args = [] }) => {
      for (const { name, value } of args) {
        if (name.value === 'if' && value.kind === Kind.VARIABLE) names.add(value.name.value);
      }
    },
  });
  return [...names];
}

/** Keeps the latest variants of one operation. Callers choose how many are made: by their conditions and page sizes. */
class KeptVariants {
  readonly #variants = new Map<string, KeptVariant>();
  readonly #max: number;
  readonly #grown: (bytes: number) => void;
  #bytes = 0;

  /**
   * @param max bytes of memory that they may take, unless it is only one
   * @param grown called with the bytes that they take more than before
   */
  constructor(max: number, grown: (bytes: number) => void) {
    this.#max = max;
    this.#grown = grown;
  }

  get(name: string): Variant | undefined {
    return this.#variants.get(name)?.variant;
  }

  /** @param make calls `grow` with the bytes of whatever the variant keeps: now, or when it is needed */
  add(name: string, make: (grow: (bytes: number) => void) => Variant): Variant {
    let kept: KeptVariant | undefined;
    let bytes = 2 * name.length;
    const variant = make((more) => {
      if (!kept) bytes += more;
      else if (this.#variants.get(name) === kept) this.#grow(kept, more);
    });
    kept = { variant, bytes: 0 };
    this.#variants.set(name, kept);
    this.#grow(kept, bytes);
    return variant;
  }

  #grow(kept: KeptVariant, by: number): void {
    const before = this.#bytes;
    kept.bytes += by;
    this.#bytes += by;
    for (const [name, first] of this.#variants) {
      if (this.#bytes <= this.#max || this.#variants.size === 1) break;
      this.#variants.delete(name);
      this.#bytes -= first.bytes;
    }
    this.#grown(this.#bytes - before);
  }
}

interface KeptVariant {
  readonly variant: Variant;
  bytes: number;
}
