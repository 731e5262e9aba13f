import type { FragmentDefinitionNode, OperationDefinitionNode } from 'graphql';
import { LRUCache } from 'lru-cache';
import type { CollectedField, DeferUse } from '../../answers/collect-fields.ts';
import type { Adapter, NestedAdapter } from '../../schema/derivation/adapter.ts';
import type { Entity } from '../../schema/derivation/entity.ts';
import type { Call } from '../call.ts';
import type { Drains } from '../lists/drains.ts';
import type { PageInlining } from '../lists/inlined-pages.ts';
import type { ListField } from '../lists/list-field.ts';
import type { FieldValue, OperationAnswer } from '../output.ts';
import type { RequestWriter } from '../requests/request-text.ts';
import type { ReadingWatch } from '../telemetry.ts';
import type { RootRules } from './root-rules.ts';

/** An operation as its conditions have it: made once for all calls in which they are the same. */
export interface Variant {
  /** Characters of the requests that were written for it when it was made. */
  readonly size: number;
  readonly fields: readonly RootField[];
  /**
   * Answers the fields that come together: those that are not put off, or those that one `@defer` puts off.
   *
   * @param given values that are there already
   */
  answer(call: Call, use?: DeferUse, given?: GivenValues): Promise<OperationAnswer>;
}

export type GivenValues = ReadonlyMap<RootField, Promise<FieldValue>>;

export type RootField = {
  readonly key: string;
  readonly collected: CollectedField;
  readonly isNullable: boolean;
} & (
  | { readonly kind: 'forwarded' }
  | { readonly kind: 'list'; readonly list: ListField }
  | { readonly kind: 'read'; readonly read: (call: Call) => Promise<FieldValue> | FieldValue }
);

/** What the plans of all operations are made of. */
export interface PlanParts extends RootRules {
  readonly adapters: readonly Adapter[];
  readonly nested: readonly NestedAdapter[];
  readonly entities: readonly Entity[];
  readonly upstreamType: (servedType: string) => string;
  readonly inlining: PageInlining;
  readonly writer: Omit<RequestWriter, 'inlinePages' | 'defers' | 'onWritten'>;
  readonly drains: Drains;
  readonly watch: ReadingWatch;
  readonly connectionMax: number;
  readonly variants: KeptVariants;
  /** The SDL that `_service` gives. */
  readonly sdl: () => string;
}

/** One operation, as its conditions have it. */
export interface VariantParts {
  readonly operation: OperationDefinitionNode;
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  /** An outline of those of the call for which it is made: of these, only what the variant goes by is there. */
  readonly variables: Readonly<Record<string, unknown>>;
  readonly isTrue: (variable: string) => boolean;
  readonly defers: boolean;
  /** Whether something is derived below other objects than the root. */
  readonly hasNested: boolean;
}

/**
 * The plans of all operations that were made and may be wanted again: of each operation one for what its conditions
 * and the sizes of its inlined pages come to. They are bounded together: one text of 10 KB whose fragment is spread
 * thirty times takes 7 MB, and callers choose how many of its variants they ask for.
 */
export interface KeptVariants {
  ofOperation(): VariantsOfOperation;
}

export interface VariantsOfOperation {
  get(name: string): Variant | undefined;
  set(name: string, variant: Variant): void;
}

/** Characters of the requests of all plans together. A plan takes some 25 bytes of memory for each. */
const MAX_CHARACTERS = 3_000_000;
/** What even the smallest plan takes, in characters. */
const LEAST = 1_000;

export function createKeptVariants(): KeptVariants {
  const variants = new LRUCache<string, Variant>({
    maxSize: MAX_CHARACTERS,
    sizeCalculation: ({ size }, name) => LEAST + size + name.length,
  });
  let operations = 0;
  return {
    ofOperation: () => {
      operations += 1;
      const operation = `${operations} `;
      return {
        get: (name) => variants.get(operation + name),
        set: (name, variant) => void variants.set(operation + name, variant),
      };
    },
  };
}
