import { BREAK, visit, type DirectiveNode, type DocumentNode } from 'graphql';
import { conditionOf, deferOf, isIncluded } from '../../answers/collect-fields.ts';
import type { ShapeScope } from '../../answers/shape.ts';
import { isIncremental } from '../../schema/incremental-directives.ts';

/*
 * Callers who send the same request at the same time share its answer as it was read for one of them. Two requests can
 * have the same body and still be read in different ways: `@defer` is not sent, `id` and `recordId` are sent as the same
 * field, and derived fields of nested lists as the same page. The key of a request therefore has what is read, too.
 */

/**
 * Whether what is sent says how its answer is read: nothing of it is deferred, and no condition that is not sent is null.
 *
 * @param sent the caller's own selections, not rewritten
 */
export function isReadAsSent(sent: DocumentNode, scope: ShapeScope): boolean {
  let isUnsent = false;
  visit(sent, {
    Directive: (node) => {
      isUnsent = deferOf(scope, [node]) !== undefined || isRefused(scope, node);
      return isUnsent ? BREAK : undefined;
    },
  });
  return !isUnsent;
}

/**
 * Returns what is read of an answer: the selections with all conditions decided, from which the shapes of this scope
 * are made. Equal texts, with equal values of their variables, mean equal readings.
 *
 * @param selected by the caller, before anything is rewritten for the service
 */
export function whatIsRead(selected: DocumentNode, scope: ShapeScope): DocumentNode {
  const {
    // The same for all operations.
    schema: _schema,
    upstreamType: _upstreamType,
    globalIds: _globalIds,
    // Made of what the document has.
    fragments: _fragments,
    placeholderAt: _placeholderAt,
    condition,
    defers = false,
    ...others
  } = scope;
  // A new member does not compile here: if it decides how an answer is read, the returned document has to show it.
  others satisfies Record<string, never>;
  const decided = { condition, defers };
  const left = (directive: DirectiveNode): readonly DirectiveNode[] => {
    if (isRefused(decided, directive)) return [directive];
    if (directive.name.value === 'skip' || directive.name.value === 'include') return [];
    if (!isIncremental(directive)) return [directive];
    if (!deferOf(decided, [directive])) return [];
    return [
      {
        ...directive,
        arguments: (directive.arguments ?? []).filter(({ name }) => name.value !== 'if'),
      },
    ];
  };
  const decide = <Node extends { readonly directives?: readonly DirectiveNode[] }>(node: Node) =>
    isIncluded(decided, node.directives)
      ? { ...node, directives: node.directives?.flatMap(left) }
      : null;
  return visit(selected, { Field: decide, InlineFragment: decide, FragmentSpread: decide });
}

/** Whether its condition is null. */
function isRefused(scope: Pick<ShapeScope, 'condition'>, directive: DirectiveNode): boolean {
  return conditionOf(scope, [directive], directive.name.value) === null;
}
