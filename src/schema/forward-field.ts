import { getCoercedVariableValues } from '@graphql-tools/delegate';
import { OperationTypeNode, type FieldNode, type GraphQLFieldResolver } from 'graphql';
import { codedError } from '../errors.ts';
import { questionFor } from './asking/ask-upstream.ts';
import type { UpstreamLink } from './asking/upstream-link.ts';
import { checked } from './read-field.ts';
import { responsePath } from './asking/response-path.ts';
import { selectionsOf } from './asking/response-places.ts';
import type { ServingContext } from './serving-context.ts';
import { valueAt } from './asking/upstream-value.ts';

/** Which mutations callers may use: none, all, or these fields of the upstream. */
export type AllowedMutations = 'off' | 'all' | readonly string[];

/** Resolves a root field that the upstream has itself: the caller's selection goes there and back. */
export function forwardField(
  link: () => UpstreamLink,
  operation: OperationTypeNode,
): GraphQLFieldResolver<unknown, ServingContext> {
  return async (_source, _args, context, info) => {
    const { fieldNodes, operation: callers, fragments, variableValues, returnType, schema } = info;
    const variables = getCoercedVariableValues(variableValues) ?? {};
    const ask = questionFor(link(), {
      operation,
      field: rootField(fieldNodes),
      variableDefinitions: callers.variableDefinitions ?? [],
      fragments,
      variables,
    });
    const answer = await ask(variables, context);
    // What the operation asks from now on was not answered before it.
    if (operation === OperationTypeNode.MUTATION) context.requests.clearAll();
    return checked(
      valueAt(answer, responsePath(info.path), context.surplusErrors),
      returnType,
      schema,
    );
  };
}

/** A mutation that is not allowed is refused before anything is sent. */
export function refuseMutation(field: string): GraphQLFieldResolver<unknown, object> {
  return () => {
    throw codedError(
      'FORBIDDEN',
      `The mutation ${field} is switched off here. The operator can allow it with MUTATIONS.`,
    );
  };
}

/** Nodes that were merged ask for the same field with the same arguments (specification, 5.3.2). */
function rootField(nodes: readonly FieldNode[]): FieldNode {
  const [first] = nodes;
  const { alias: _alias, selectionSet, ...field } = first!;
  return {
    ...field,
    // They decided whether this field is executed, which is what happens now.
    directives:
      field.directives?.filter(({ name }) => !['skip', 'include'].includes(name.value)) ?? [],
    ...(selectionSet && {
      selectionSet: { ...selectionSet, selections: selectionsOf(nodes) },
    }),
  };
}
