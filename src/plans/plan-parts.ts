import type { FragmentDefinitionNode, OperationDefinitionNode } from 'graphql';
import type { ShapeScope } from '../answers/shape.ts';
import type { Adapter, Entity, NestedAdapter } from '../schema/derived.ts';
import type { Drains } from './drains.ts';
import type { PageInlining } from './inlined-pages.ts';
import type { KeptVariants } from './kept-variants.ts';
import type { ReadingWatch } from './reading-watch.ts';
import type { RootRules } from './root-rules.ts';
import type { RequestWriter, WrittenOperation } from './upstream-request.ts';

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

/** What of a variant its fields are planned with. */
export interface FieldParts extends PlanParts {
  readonly writer: RequestWriter;
  readonly scope: ShapeScope;
  readonly operation: WrittenOperation;
}
