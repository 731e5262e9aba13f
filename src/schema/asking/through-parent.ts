import { astFromType } from '@graphql-tools/utils';
import { Kind, type FieldNode, type VariableDefinitionNode } from 'graphql';
import type { ErrorCode } from '../../errors.ts';
import { questionFor, type AskUpstream } from './ask-upstream.ts';
import { field } from './page-question.ts';
import type { Reach } from '../derivation/reach-parent.ts';
import { idAlias } from './ride-names.ts';
import type { UpstreamError, UpstreamValue } from './upstream-value.ts';

type Id = string | number | undefined;

/** Asks a field of a parent as if it were a root field, through the way by which the parent is reached again. */
export function throughParent(parent: string, reach: Reach, id: Id): typeof questionFor {
  return (link, question) => {
    const [root, ...inner] = reach.kind === 'id' ? [reach.field] : reach.fields;
    if (reach.kind === 'id' && id === undefined) return () => Promise.resolve(withoutId(parent));
    const hasId = reach.kind === 'path' && reach.hasId;
    const selections = [
      question.field,
      ...(hasId ? [field('id', { alias: idAlias(parent) })] : []),
    ];
    const below = inner.reduceRight<readonly FieldNode[]>(
      (wanted, name) => [field(name, { selections: wanted })],
      selections,
    );
    const write = () =>
      questionFor(link, {
        ...question,
        field: {
          ...field(root!, { selections: below }),
          ...(reach.kind === 'id' && { arguments: [idArgument(reach.argument.name)] }),
        },
        variableDefinitions: [
          ...question.variableDefinitions,
          ...(reach.kind === 'id' ? [idDefinition(reach)] : []),
        ],
      });
    // Written when it is needed: of most parents the page that rode along is all.
    let ask: AskUpstream | undefined;
    return async (variables, context) => {
      ask ??= write();
      const answer = await ask({ ...variables, [ID]: id }, context);
      const found = descend(answer, inner);
      if (found.value === null && found.errors.length === 0) return gone(parent);
      const there = (found.value as Record<string, unknown> | null)?.[idAlias(parent)];
      if (hasId && found.value !== null && String(there) !== String(id)) {
        return another(parent, reach.fields);
      }
      return descend(found, [question.field.name.value]);
    };
  };
}

/** Not `_rs_…`: those are the arguments of the list. */
const ID = '_rsParentId';

function idArgument(name: string) {
  return {
    kind: Kind.ARGUMENT,
    name: { kind: Kind.NAME, value: name },
    value: { kind: Kind.VARIABLE, name: { kind: Kind.NAME, value: ID } },
  } as const;
}

function idDefinition({ argument }: Extract<Reach, { kind: 'id' }>): VariableDefinitionNode {
  return {
    kind: Kind.VARIABLE_DEFINITION,
    variable: { kind: Kind.VARIABLE, name: { kind: Kind.NAME, value: ID } },
    type: astFromType(argument.type),
  };
}

/** What stands at the path; errors beside it belong to it all the same. */
function descend({ value, errors }: UpstreamValue, path: readonly string[]): UpstreamValue {
  let inner: unknown = value;
  for (const step of path) inner = (inner as Record<string, unknown> | null)?.[step] ?? null;
  return {
    value: inner,
    errors: errors.map((error) => ({
      ...error,
      path: path.every((step, index) => error.path[index] === step)
        ? error.path.slice(path.length)
        : [],
    })),
  };
}

function withoutId(parent: string): UpstreamValue {
  return failed(
    'UPSTREAM_BAD_RESPONSE',
    `The recruiting service gave this ${parent} without an id, so the further pages of its list cannot be asked.`,
  );
}

function gone(parent: string): UpstreamValue {
  return failed(
    'UPSTREAM_BAD_RESPONSE',
    `The recruiting service does not give this ${parent} any more, so its list cannot be read on. Ask for its parent anew.`,
  );
}

function another(parent: string, path: readonly string[]): UpstreamValue {
  return failed(
    'BAD_USER_INPUT',
    `Only the ${parent} at ${path.join('.')} can be reached again, and this is another one: ` +
      'of its list no more can be had than one page from the start.',
  );
}

function failed(code: ErrorCode, message: string): UpstreamValue {
  const error: UpstreamError = { path: [], message, extensions: { code } };
  return { value: null, errors: [error] };
}
