import { BREAK, GraphQLError, Kind, visit, type ASTNode, type DocumentNode } from 'graphql';
import type { Wording } from './habits.ts';

/** An error of validation as other servers word it. What they would word otherwise too, and is not here, stays. */
export function worded(
  error: GraphQLError,
  document: DocumentNode,
  wording: Wording,
): GraphQLError {
  if (wording === 'graphql-js') return error;
  const place = placeOf(error.nodes?.[0], document);
  const java = (kind: string, message: string) =>
    said(error, `Validation error (${kind}@[${place.join('/')}]) : ${message}`, {
      classification: 'ValidationError',
    });
  const isJava = wording === 'graphql-java';
  const [, field, type] = /^Cannot query field "(\w+)" on type "(\w+)"/.exec(error.message) ?? [];
  if (field !== undefined) {
    return isJava
      ? java('FieldUndefined', `Field '${field}' in type '${type}' is undefined`)
      : said(error, `The field \`${field}\` does not exist on the type \`${type}\`.`, {
          type,
          field,
          responseName: place.at(-1),
          specifiedBy: `${SPECIFICATION}#sec-Field-Selections-on-Objects-Interfaces-and-Unions-Types`,
        });
  }
  const [, argument] = /^Unknown argument "(\w+)" on field/.exec(error.message) ?? [];
  if (argument !== undefined) {
    return isJava
      ? java('UnknownArgument', `Unknown field argument '${argument}'`)
      : said(error, `The argument \`${argument}\` does not exist.`, {
          argument,
          specifiedBy: `${SPECIFICATION}#sec-Argument-Names`,
        });
  }
  const [, unknown] = /^Unknown type "(\w+)"/.exec(error.message) ?? [];
  if (unknown !== undefined) {
    return isJava
      ? java('UnknownType', `Unknown type '${unknown}'`)
      : said(error, `Unknown type \`${unknown}\`.`, {
          typeCondition: unknown,
          specifiedBy: `${SPECIFICATION}#sec-Fragment-Spread-Type-Existence`,
        });
  }
  return error;
}

const SPECIFICATION = 'https://spec.graphql.org/October2021/';

/** The names of the fields around a node, and its own if it is a field. */
function placeOf(node: ASTNode | undefined, document: DocumentNode): string[] {
  let place: string[] = [];
  visit(document, {
    enter(each, _key, _parent, _path, ancestors) {
      if (each !== node) return undefined;
      place = [...ancestors, each].flatMap((around) =>
        'kind' in around && around.kind === Kind.FIELD ? [around.name.value] : [],
      );
      return BREAK;
    },
  });
  return place;
}

function said(
  { nodes }: GraphQLError,
  message: string,
  extensions: Record<string, unknown>,
): GraphQLError {
  return new GraphQLError(message, { ...(nodes && { nodes }), extensions });
}
