import {
  getNamedType,
  GraphQLError,
  isIntrospectionType,
  Kind,
  type ASTVisitor,
  type DocumentNode,
  type SelectionSetNode,
  type ValidationContext,
} from 'graphql';
import { fragmentsOf } from './fragments.ts';
import type { Wording } from './habits.ts';

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

/** Returns the refusal of an introspection that asks for one of these fields in several places of its answer. */
export function badFaithOf(document: DocumentNode): GraphQLError | undefined {
  const fragments = fragmentsOf(document);
  const places = new Map<string, Set<string>>();
  for (const each of document.definitions) {
    if (each.kind === Kind.OPERATION_DEFINITION) visit(each.selectionSet, '', false);
  }
  const repeated = [...places].find(([, { size }]) => size > 1)?.[0];
  return repeated === undefined
    ? undefined
    : new GraphQLError(
        `This request is not asking for introspection in good faith - ${repeated} is present too often!`,
        { extensions: { classification: 'BadFaithIntrospection' } },
      );

  function visit({ selections }: SelectionSetNode, path: string, isWithin: boolean): void {
    for (const selection of selections) {
      if (selection.kind === Kind.FRAGMENT_SPREAD) {
        visit(fragments.get(selection.name.value)!.selectionSet, path, isWithin);
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        visit(selection.selectionSet, path, isWithin);
      } else {
        const name = selection.name.value;
        const isRoot = path === '' && ROOT_FIELDS.has(name);
        if (path !== '' && !isWithin) continue;
        const place = `${path}.${selection.alias?.value ?? name}`;
        if (isRoot) note(`Query.${name}`, place);
        if (isWithin && FIELDS_OF_TYPE.has(name)) note(`__Type.${name}`, place);
        if (selection.selectionSet && (isRoot || isWithin)) {
          visit(selection.selectionSet, place, true);
        }
      }
    }
  }

  function note(field: string, place: string): void {
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
