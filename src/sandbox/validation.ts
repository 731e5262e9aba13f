import {
  BREAK,
  getNamedType,
  GraphQLError,
  isIntrospectionType,
  Kind,
  visit,
  type ASTNode,
  type ASTVisitor,
  type DocumentNode,
  type SelectionSetNode,
  type ValidationContext,
} from 'graphql';
import type { Wording } from './habits.ts';
import { fragmentsOf } from './operation-cost.ts';

/** Refuses the fields that describe the schema. `__typename` is none of them. */
export function noIntrospection(wording: Wording): (context: ValidationContext) => ASTVisitor {
  return (context) => ({
    Field(node) {
      const type = getNamedType(context.getType());
      if (!type || !isIntrospectionType(type) || !node.name.value.startsWith('__')) return;
      context.reportError(refusal(node.name.value, wording));
    },
  });
}

function refusal(field: string, wording: Wording): GraphQLError {
  switch (wording) {
    case 'graphql-js':
      return new GraphQLError(
        `GraphQL introspection has been disabled, but the requested query contained the field "${field}".`,
      );
    case 'graphql-java':
      return new GraphQLError('Introspection has been disabled for this request', {
        extensions: { classification: 'IntrospectionDisabled' },
      });
    case 'hot-chocolate':
      return new GraphQLError('Introspection is not allowed for the current request.', {
        extensions: { field, code: 'HC0046' },
      });
  }
}

/** Returns the error for an introspection that selects one of these fields in several places. */
export function badFaithOf(document: DocumentNode): GraphQLError | undefined {
  const fragments = fragmentsOf(document);
  const places = new Map<string, Set<string>>();
  for (const each of document.definitions) {
    if (each.kind === Kind.OPERATION_DEFINITION) note(each.selectionSet, '', false);
  }
  const repeated = [...places].find(([, { size }]) => size > 1)?.[0];
  return repeated === undefined
    ? undefined
    : new GraphQLError(
        `This request is not asking for introspection in good faith - ${repeated} is present too often!`,
        { extensions: { classification: 'BadFaithIntrospection' } },
      );

  function note({ selections }: SelectionSetNode, path: string, isWithin: boolean): void {
    for (const selection of selections) {
      if (selection.kind === Kind.FRAGMENT_SPREAD) {
        note(fragments.get(selection.name.value)!.selectionSet, path, isWithin);
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        note(selection.selectionSet, path, isWithin);
      } else {
        const name = selection.name.value;
        const isRoot = path === '' && ROOT_FIELDS.has(name);
        if (path !== '' && !isWithin) continue;
        const place = `${path}.${selection.alias?.value ?? name}`;
        if (isRoot) count(`Query.${name}`, place);
        if (isWithin && FIELDS_OF_TYPE.has(name)) count(`__Type.${name}`, place);
        if (selection.selectionSet && (isRoot || isWithin)) {
          note(selection.selectionSet, place, true);
        }
      }
    }
  }

  function count(field: string, place: string): void {
    const known = places.get(field) ?? new Set();
    places.set(field, known.add(place));
  }
}

const ROOT_FIELDS: ReadonlySet<string> = new Set(['__schema', '__type']);
const FIELDS_OF_TYPE: ReadonlySet<string> = new Set([
  'fields',
  'inputFields',
  'interfaces',
  'possibleTypes',
]);

/** Rewords a validation error as another server would. Only the usual errors are known; others stay as they are. */
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
