import { OperationTypeNode, type SelectionNode } from 'graphql';
import type { Slot } from '../../answers/envelope.ts';
import type { ShapeScope } from '../../answers/shape.ts';
import type { Json } from '../../json.ts';
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
  /** The selections to send, with the caller's fragments and directives. */
  readonly selections: readonly SelectionNode[];
  /** The fields to expect, in the order of the answer. */
  readonly fields: readonly Slot[];
}

export function forwardedFields({
  writer,
  scope,
  operation,
  selections,
  fields,
}: ForwardedParts): ForwardedFields {
  const isQuery = operation.operation === OperationTypeNode.QUERY;
  const write = (pages: PagesToInline) => writeRequest(writer, operation, selections, pages, scope);
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
