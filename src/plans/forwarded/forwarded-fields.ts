import {
  Kind,
  OperationTypeNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type InlineFragmentNode,
  type SelectionNode,
} from 'graphql';
import { OWN_KEYS } from '../../answers/answer-errors.ts';
import type { Json } from '../../json.ts';
import type { CallVariables, UpstreamRequest } from '../call.ts';
import {
  writeRequest,
  type PagesToInline,
  type RequestWriter,
  type WrittenOperation,
} from '../requests/request-text.ts';
import {
  forwardedScanner,
  readForwarded,
  type ForwardedAnswer,
  type ForwardedShape,
} from './forwarded-answer.ts';

/** The root fields that the service answers itself: requested together, as the caller wrote them. */
export interface ForwardedFields {
  request(variables: CallVariables, pages?: PagesToInline): UpstreamRequest<ForwardedAnswer>;
}

export interface ForwardedParts {
  readonly writer: RequestWriter;
  readonly operation: WrittenOperation;
  /** The selections to send, with the caller's fragments and directives. */
  readonly selections: readonly SelectionNode[];
  /** The fields to expect, in the order of the answer. */
  readonly fields: readonly ForwardedShape[];
}

export function forwardedFields({
  writer,
  operation,
  selections,
  fields,
}: ForwardedParts): ForwardedFields {
  const isQuery = operation.operation === OperationTypeNode.QUERY;
  const write = (pages: PagesToInline) => writeRequest(writer, operation, selections, pages);
  // A mutation cannot be sent again without the inlined pages that failed.
  const whole = write(isQuery ? 'all' : 'safe');
  const scan = forwardedScanner(fields);
  const read = (answer: Json) => readForwarded(answer, fields, isQuery);
  return {
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

/** Selections of the root, and the fragments that they may spread. */
export interface RootSelections {
  readonly selections: readonly SelectionNode[];
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
}

/**
 * Leaves only forwarded fields in selections of the root, and in their fragments. A fragment that loses fields gets a
 * second definition under another name, since it may also be spread below the root, where the service answers all of it.
 */
export function onlyForwarded(
  isForwarded: (field: FieldNode) => boolean,
  { selections, fragments }: RootSelections,
): RootSelections {
  const defined = new Map(fragments);
  const names = new Map<string, string | undefined>();
  return { selections: leftOf(selections), fragments: defined };

  function leftOf(some: readonly SelectionNode[]): readonly SelectionNode[] {
    return some.flatMap((selection): SelectionNode[] => {
      if (selection.kind === Kind.FIELD) return isForwarded(selection) ? [selection] : [];
      if (selection.kind === Kind.INLINE_FRAGMENT) {
        const left = reduced(selection);
        return left ? [left] : [];
      }
      const { value } = selection.name;
      if (!names.has(value)) names.set(value, nameOfReduced(value));
      const name = names.get(value);
      if (name === undefined) return [];
      return name === value
        ? [selection]
        : [{ ...selection, name: { kind: Kind.NAME, value: name } }];
    });
  }

  /** The fragment itself if it loses nothing; undefined if nothing is left. */
  function reduced<F extends FragmentDefinitionNode | InlineFragmentNode>(
    fragment: F,
  ): F | undefined {
    const all = fragment.selectionSet.selections;
    const left = leftOf(all);
    if (left.length === 0) return undefined;
    const isSame = left.length === all.length && left.every((one, i) => one === all[i]);
    if (isSame) return fragment;
    return { ...fragment, selectionSet: { kind: Kind.SELECTION_SET, selections: left } };
  }

  function nameOfReduced(name: string): string | undefined {
    const fragment = fragments.get(name);
    const left = fragment && reduced(fragment);
    if (!left || left === fragment) return left && name;
    let value = `${OWN_KEYS}Forwarded_${name}`;
    while (defined.has(value)) value += '_';
    defined.set(value, { ...left, name: { kind: Kind.NAME, value } });
    return value;
  }
}
