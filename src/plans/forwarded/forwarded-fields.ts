import {
  Kind,
  OperationTypeNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type FragmentSpreadNode,
  type InlineFragmentNode,
  type SelectionNode,
} from 'graphql';
import { OWN_KEYS } from '../../answers/answer-errors.ts';
import type { Slot } from '../../answers/envelope.ts';
import type { ShapeScope } from '../../answers/shape.ts';
import type { Json } from '../../json.ts';
import type { Fragments } from '../../selections.ts';
import type { CallVariables, UpstreamRequest } from '../call.ts';
import type { SizedList } from '../requests/accepted-sizes.ts';
import {
  writeRequest,
  type PagesToInline,
  type RequestWriter,
  type WrittenOperation,
} from '../requests/request-text.ts';
import { forwardedScanner, readForwarded, type ForwardedAnswer } from './forwarded-answer.ts';

/** The root fields that the service answers itself: requested together, as the caller wrote them. */
export interface ForwardedFields {
  /** What tells whether its first pages of nested lists are too much for the service. */
  readonly sized: SizedList;
  request(variables: CallVariables, pages?: PagesToInline): UpstreamRequest<ForwardedAnswer>;
}

export interface ForwardedParts {
  readonly writer: RequestWriter;
  readonly scope: ShapeScope;
  readonly operation: WrittenOperation;
  /** Those of the operation, with fragments and directives. */
  readonly selections: readonly SelectionNode[];
  /** Whether a root field is sent with this request. */
  readonly isSent: (node: FieldNode) => boolean;
  /** The fields to expect, in the order of the answer. */
  readonly fields: readonly Slot[];
}

export function forwardedFields({
  writer,
  scope,
  operation,
  selections,
  isSent,
  fields,
}: ForwardedParts): ForwardedFields {
  const isQuery = operation.operation === OperationTypeNode.QUERY;
  const sent = reducedRoot(selections, operation.fragments, isSent);
  const reduced = { ...operation, fragments: sent.fragments };
  const write = (pages: PagesToInline) =>
    writeRequest(writer, reduced, sent.selections, pages, scope);
  // A mutation cannot be sent again without the inlined pages that failed.
  const whole = write(isQuery ? 'all' : 'safe');
  const scan = forwardedScanner(fields);
  const read = (answer: Json, status: number) => readForwarded(answer, fields, status);
  return {
    sized: {
      list: `${scope.schema.getQueryType()!.name}.${whole.field}`,
      selection: whole.selection,
      begin: undefined,
      hasInlinedPages: whole.hasInlinedPages,
    },
    request: (variables, pages = 'all') => {
      const written = pages === 'all' || !isQuery ? whole : write(pages);
      return {
        kind: isQuery ? 'query' : 'mutation',
        field: written.field,
        body: written.body(variables),
        key: written.key(variables),
        pages: written.pages(variables),
        scan,
        read,
      };
    },
  };
}

/**
 * Reduces selections of the root, and the fragments that they spread, to the fields to be sent. A fragment in which
 * nothing is left is left out. One that changes gets a second definition under another name, since it may also be spread
 * below the root, where the service answers all of it.
 */
function reducedRoot(
  selections: readonly SelectionNode[],
  fragments: Fragments,
  isSent: (node: FieldNode) => boolean,
): { readonly selections: readonly SelectionNode[]; readonly fragments: Fragments } {
  const defined = new Map(fragments);
  const names = new Map<string, string | undefined>();
  let parts = 0;
  return { selections: selections.flatMap(leftOf), fragments: defined };

  function leftOf(selection: SelectionNode): SelectionNode | readonly [] {
    if (selection.kind === Kind.FIELD) return isSent(selection) ? selection : [];
    const left = selection.kind === Kind.INLINE_FRAGMENT ? reduced(selection) : renamed(selection);
    return left ?? [];
  }

  /** The fragment itself if it loses nothing; undefined if nothing is left. */
  function reduced<F extends FragmentDefinitionNode | InlineFragmentNode>(
    fragment: F,
  ): F | undefined {
    const all = fragment.selectionSet.selections;
    const left = all.flatMap(leftOf);
    if (left.length === 0) return undefined;
    const isSame = left.length === all.length && left.every((one, i) => one === all[i]);
    if (isSame) return fragment;
    return { ...fragment, selectionSet: { kind: Kind.SELECTION_SET, selections: left } };
  }

  function renamed(spread: FragmentSpreadNode): FragmentSpreadNode | undefined {
    const { value } = spread.name;
    if (!names.has(value)) names.set(value, nameOfReduced(value));
    const name = names.get(value);
    if (name === undefined) return undefined;
    return name === value ? spread : { ...spread, name: { kind: Kind.NAME, value: name } };
  }

  function nameOfReduced(name: string): string | undefined {
    const fragment = fragments.get(name);
    const left = fragment && reduced(fragment);
    if (!left || left === fragment) return left && name;
    // Numbered: operations that differ only in the names of their fragments send the same.
    let value: string;
    do value = `${OWN_KEYS}Part${parts++}`;
    while (defined.has(value));
    defined.set(value, { ...left, name: { kind: Kind.NAME, value } });
    return value;
  }
}
