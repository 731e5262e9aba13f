import type { FragmentDefinitionNode, GraphQLSchema, OperationDefinitionNode } from 'graphql';
import { LRUCache } from 'lru-cache';
import type { CollectedField, DeferUse } from '../../answers/collect-fields.ts';
import type { Adapter, Entity, NestedAdapter, NodeInterface } from '../../schema/derived.ts';
import type { Call } from '../call.ts';
import type { Drains } from '../lists/drains.ts';
import type { PageInlining } from '../lists/inlined-pages.ts';
import type { ListField } from '../lists/list-field.ts';
import type { FieldValue, OperationAnswer } from '../output.ts';
import type { RequestWriter } from '../requests/request-text.ts';
import type { ReadingTelemetry } from '../telemetry.ts';
import type { LocalFields } from './local-fields.ts';
import type { RootRules } from './root-rules.ts';

/** The plan of an operation for one outcome of its conditions, and one set of sizes of inlined pages. */
export interface Variant {
  /** Characters of the requests that were written for it. */
  readonly size: number;
  readonly fields: readonly RootField[];
  /**
   * Answers the root fields without `@defer`, or those of one `@defer`.
   *
   * @param given values that are being read already
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

export function rootFieldName({ collected: { nodes } }: RootField): string {
  return nodes[0]!.name.value;
}

/** What all operations are planned with. */
export interface PlanParts extends RootRules {
  readonly adapters: readonly Adapter[];
  readonly nested: readonly NestedAdapter[];
  readonly entities: readonly Entity[];
  readonly nodes: NodeInterface | undefined;
  readonly upstreamType: (servedType: string) => string;
  readonly inlining: PageInlining;
  readonly writer: Pick<RequestWriter, 'schema' | 'withoutNode' | 'toUpstream'>;
  /** The upstream's schema, unchanged. */
  readonly snapshot: GraphQLSchema;
  readonly drains: Drains;
  readonly telemetry: ReadingTelemetry;
  readonly connectionMax: number;
  readonly variants: KeptVariants;
  readonly local: LocalFields;
}

/** What one variant is planned with. */
export interface VariantParts {
  readonly operation: OperationDefinitionNode;
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  /** The values that the sizes of inlined pages depend on; `true` stands for any other value. */
  readonly variables: Readonly<Record<string, unknown>>;
  readonly isTrue: (variable: string) => boolean;
  readonly defers: boolean;
  /** Whether the operation selects derived fields of nested lists. */
  readonly hasNested: boolean;
}

/**
 * Keeps the variants of all operations, within one bound. A bound per operation would not do: a text of 10 KB that
 * spreads a fragment thirty times takes 7 MB, and callers choose how many of its variants are made.
 */
export interface KeptVariants {
  ofOperation(): VariantsOfOperation;
}

export interface VariantsOfOperation {
  get(name: string): Variant | undefined;
  set(name: string, variant: Variant): void;
}

/** Characters of the requests of all variants together. Each takes about 25 bytes of memory. */
const MAX_CHARACTERS = 3_000_000;
/** The size of the smallest variant, in characters. */
const MIN_SIZE = 1_000;

export function createKeptVariants(): KeptVariants {
  const variants = new LRUCache<string, Variant>({
    maxSize: MAX_CHARACTERS,
    sizeCalculation: ({ size }, name) => MIN_SIZE + size + name.length,
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
