import type { FragmentDefinitionNode, GraphQLSchema, OperationDefinitionNode } from 'graphql';
import type { CollectedField, DeferUse, SelectionScope } from '../../answers/collect-fields.ts';
import type { Adapter, Entity, NestedAdapter, NodeInterface } from '../../schema/derived.ts';
import type { Call } from '../call.ts';
import type { Drains } from '../lists/drains.ts';
import type { PageInlining } from '../lists/inlined-pages.ts';
import type { ListField } from '../lists/list-field.ts';
import type { FieldValue, OperationAnswer } from '../output.ts';
import type { RequestWriter } from '../requests/request-text.ts';
import type { AcceptedSizes } from '../requests/accepted-sizes.ts';
import type { ReadingTelemetry } from '../telemetry.ts';
import type { LocalFields } from './local-fields.ts';
import type { RootRules } from './root-rules.ts';

/** The plan of an operation for one outcome of its conditions, and one set of sizes of inlined pages. */
export interface Variant {
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
  readonly sizes: AcceptedSizes;
  readonly connectionMax: number;
  /** Bytes of memory that the variants of one operation may take. */
  readonly variantBytes: number;
  readonly local: LocalFields;
}

/** What one variant is planned with. */
export interface VariantParts {
  readonly operation: OperationDefinitionNode;
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  /** The values that the sizes of inlined pages depend on; `true` stands for any other value. */
  readonly variables: Readonly<Record<string, unknown>>;
  readonly condition: SelectionScope['condition'];
  readonly defers: boolean;
  /** Whether the operation selects derived fields of nested lists. */
  readonly hasNested: boolean;
  /** Called with the bytes of memory of whatever is kept for the variant. */
  readonly grow: (bytes: number) => void;
}

/** Keeps the latest variants of one operation. Callers choose how many are made: by their conditions and page sizes. */
export class KeptVariants {
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
