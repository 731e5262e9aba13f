import type { PagedField } from './find-paged-fields.ts';
import type { Reach } from './reach-parent.ts';

/** What a paged list gets, with the names that it gets it under. */
export interface Adapter extends PagedField {
  /** The type that has the list. */
  readonly parent: string;
  /** Undefined where the upstream has that name already. */
  readonly all:
    { readonly field: string; readonly limit: string; readonly after: string } | undefined;
  readonly connection:
    | {
        readonly field: string;
        readonly type: string;
        readonly edge: string;
        /** The names of our own arguments; a filter of the upstream may have the plain ones. */
        readonly last: string;
        readonly before: string;
      }
    | undefined;
}

/** A list that is a field of an object, not of the root. */
export interface NestedAdapter extends Adapter {
  readonly reach: Reach;
}
