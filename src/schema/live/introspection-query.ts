import {
  buildSchema,
  getIntrospectionQuery,
  parse,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
} from 'graphql';

const TYPES = ['__Schema', '__Type', '__Field', '__InputValue', '__Directive'] as const;

/** Asks what the introspection of a service knows. */
export const ABOUT_INTROSPECTION = parse(/* GraphQL */ `
  query AboutIntrospection {
    ${TYPES.map((type) => `about${type}: __type(name: "${type}") { ...Known }`).join('\n')}
  }

  fragment Known on __Type {
    fields {
      name
      args {
        name
      }
    }
  }
`);

/** The answer to it. */
export type AboutIntrospection = Partial<Record<string, KnownType | null>>;

interface KnownType {
  readonly fields?: readonly KnownField[] | null;
}

interface KnownField {
  readonly name: string;
  readonly args?: readonly { readonly name: string }[] | null;
}

/**
 * Everything there is to know of a schema, less what this service does not know: one unknown field, such as
 * `isOneOf`, and it would refuse the whole query.
 */
export function introspectionQuery(about: AboutIntrospection): DocumentNode {
  if (!TYPES.every((type) => about[`about${type}`]?.fields)) return parse(getIntrospectionQuery());
  const types = new TypeInfo(buildSchema('type Query { any: Int }'));
  const withoutUnknown = visitWithTypeInfo(types, {
    Field: (node) => {
      const known = about[`about${types.getParentType()?.name}`]?.fields;
      if (!known) return undefined;
      const field = known.find(({ name }) => name === node.name.value);
      if (!field) return null;
      const takes = (name: string) => field.args?.some((argument) => argument.name === name);
      const given = node.arguments?.filter(({ name }) => takes(name.value)) ?? [];
      return { ...node, arguments: given };
    },
  });
  return visit(EVERYTHING, withoutUnknown);
}

const EVERYTHING = parse(
  getIntrospectionQuery({
    descriptions: true,
    schemaDescription: true,
    specifiedByUrl: true,
    directiveIsRepeatable: true,
    inputValueDeprecation: true,
    oneOf: true,
  }),
);
