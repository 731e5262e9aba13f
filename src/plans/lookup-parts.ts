import type { SelectionNode } from 'graphql';
import type { ShapeScope } from '../answers/shape.ts';
import type { Drains } from './drains.ts';
import type { ReadingWatch } from './reading-watch.ts';
import type { RequestWriter, WrittenOperation } from './upstream-request.ts';

/** What looking for records by their ids needs of the rest. */
export interface LookupParts {
  readonly writer: RequestWriter;
  readonly scope: ShapeScope;
  readonly operation: WrittenOperation;
  readonly drains: Pick<Drains, 'lookedUp'>;
  readonly watch: ReadingWatch;
  /** What is selected of the records. */
  readonly selections: readonly SelectionNode[];
}
