import {
  Kind,
  valueFromASTUntyped,
  visit,
  type DefinitionNode,
  type DirectiveNode,
  type DocumentNode,
  assertValidSchema,
  buildASTSchema,
  getNamedType,
  GraphQLSchema,
  isInputObjectType,
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
  parse,
  type GraphQLInputType,
  type GraphQLOutputType,
} from 'graphql';
import { OperatorMistake } from '../errors.ts';

/** A directive that an SDL document uses without defining it. */
interface UndefinedDirective {
  readonly name: string;
  readonly count: number;
  /** The line of its first use; undefined if the document has no locations. */
  readonly line: number | undefined;
}

/**
 * Reads the SDL of a Federation subgraph as the schema that its service serves. Undefined directives that describe how
 * subgraphs are joined are removed, and a type that is only extended counts as defined. Any other SDL is returned
 * unchanged.
 *
 * @returns also the directives that cannot be removed: `hiding`, by which a supergraph hides or protects fields that
 * the service returns, and `unknown`
 */
function withoutFederation(document: DocumentNode) {
  const used = undefinedDirectives(document);
  const aliases = linkedNames(document);
  const meaning = ({ name }: UndefinedDirective) => aliases.get(name) ?? name;
  const joining = used.filter((each) => JOINING.has(meaning(each)));
  const hiding = used.filter((each) => HIDING.has(meaning(each)));
  return {
    document: joining.length > 0 ? withoutDirectives(document, joining) : document,
    hiding,
    unknown: used.filter((each) => !joining.includes(each) && !hiding.includes(each)),
  };
}

const JOINING: ReadonlySet<string> = new Set([
  'composeDirective',
  'connect',
  'context',
  'cost',
  'extends',
  'external',
  'fromContext',
  'interfaceObject',
  'key',
  'link',
  'listSize',
  'override',
  'provides',
  'requires',
  'shareable',
  'source',
  'tag',
]);
const HIDING: ReadonlySet<string> = new Set([
  'authenticated',
  'inaccessible',
  'policy',
  'requiresScopes',
]);
const BUILT_IN: ReadonlySet<string> = new Set([
  'deprecated',
  'include',
  'oneOf',
  'skip',
  'specifiedBy',
]);

function undefinedDirectives(document: DocumentNode): UndefinedDirective[] {
  const defined = new Set(
    document.definitions.flatMap((definition) =>
      definition.kind === Kind.DIRECTIVE_DEFINITION ? [definition.name.value] : [],
    ),
  );
  const missing = new Map<string, UndefinedDirective>();
  visit(document, {
    Directive: ({ name: { value: name }, loc }) => {
      if (defined.has(name) || BUILT_IN.has(name)) return false;
      const { count, line } = missing.get(name) ?? { count: 0, line: loc?.startToken.line };
      missing.set(name, { name, count: count + 1, line });
      return false;
    },
  });
  return [...missing.values()];
}

/**
 * The directives that `@link` imports or renames: from the name in this document to the name in the Federation
 * specification (see https://specs.apollo.dev/link/v1.0).
 */
function linkedNames(document: DocumentNode): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const { as, specification, imports } of links(document)) {
    for (const name of [...JOINING, ...HIDING]) names.set(`${as}__${name}`, name);
    names.set(as, specification);
    for (const { name, as: alias = name } of imports) {
      if (name.startsWith('@')) names.set(alias.slice(1), name.slice(1));
    }
  }
  return names;
}

interface Link {
  readonly specification: string;
  readonly as: string;
  readonly imports: readonly { readonly name: string; readonly as?: string }[];
}

function links(document: DocumentNode): Link[] {
  return document.definitions
    .flatMap((definition) =>
      definition.kind === Kind.SCHEMA_DEFINITION || definition.kind === Kind.SCHEMA_EXTENSION
        ? (definition.directives ?? [])
        : [],
    )
    .filter(({ name }) => name.value === 'link')
    .flatMap((node) => {
      const { url, as, import: imports } = argumentsOf(node);
      const specification = /^https:\/\/specs\.apollo\.dev\/(\w+)\/v/.exec(String(url))?.[1];
      if (specification === undefined) return [];
      return {
        specification,
        as: typeof as === 'string' ? as : specification,
        imports: (Array.isArray(imports) ? imports : []).map((each: string | Link['imports'][0]) =>
          typeof each === 'string' ? { name: each } : each,
        ),
      };
    });
}

function argumentsOf({ arguments: nodes = [] }: DirectiveNode): Record<string, unknown> {
  return Object.fromEntries(
    nodes.map(({ name, value }) => [name.value, valueFromASTUntyped(value)]),
  );
}

function withoutDirectives(
  document: DocumentNode,
  directives: readonly UndefinedDirective[],
): DocumentNode {
  const names = new Set(directives.map(({ name }) => name));
  const read = visit(document, {
    Directive: ({ name }) => (names.has(name.value) ? null : false),
    SchemaExtension: {
      leave: ({ directives: left = [], operationTypes = [] }) =>
        left.length + operationTypes.length === 0 ? null : undefined,
    },
  });
  return { ...read, definitions: asDefinitions(read.definitions) };
}

const DEFINITION_OF: ReadonlyMap<string, string> = new Map([
  [Kind.SCALAR_TYPE_EXTENSION, Kind.SCALAR_TYPE_DEFINITION],
  [Kind.OBJECT_TYPE_EXTENSION, Kind.OBJECT_TYPE_DEFINITION],
  [Kind.INTERFACE_TYPE_EXTENSION, Kind.INTERFACE_TYPE_DEFINITION],
  [Kind.UNION_TYPE_EXTENSION, Kind.UNION_TYPE_DEFINITION],
  [Kind.ENUM_TYPE_EXTENSION, Kind.ENUM_TYPE_DEFINITION],
  [Kind.INPUT_OBJECT_TYPE_EXTENSION, Kind.INPUT_OBJECT_TYPE_DEFINITION],
]);

/** Turns the first extension of a type that another subgraph defines into its definition. */
function asDefinitions(definitions: readonly DefinitionNode[]): DefinitionNode[] {
  const defined = new Set(
    definitions.flatMap((node) =>
      node.kind.endsWith('TypeDefinition') && 'name' in node ? [node.name?.value] : [],
    ),
  );
  return definitions.map((node) => {
    const kind = DEFINITION_OF.get(node.kind);
    if (kind === undefined || !('name' in node) || defined.has(node.name?.value)) return node;
    defined.add(node.name?.value);
    return { ...node, kind } as DefinitionNode;
  });
}

/**
 * Reads the snapshot of the upstream's schema. In the SDL of a subgraph, the directives of its supergraph are ignored.
 *
 * @param source SDL
 * @param path the file, for messages
 * @throws OperatorMistake
 */
export function readSnapshot(source: string, path: string): GraphQLSchema {
  const schema = withoutSubscriptions(build(source, path));
  const unservable = usesOfIntrospection(schema);
  if (unservable.length > 0) {
    throw new OperatorMistake(
      `The schema snapshot (${path}) has fields or arguments whose types are introspection types, which cannot be served: ` +
        `${shortened(unservable).join(', ')}. Remove them from the file.`,
    );
  }
  return schema;
}

function build(source: string, path: string): GraphQLSchema {
  const refused = (cause: unknown) => {
    const { message, locations } = cause as Error & { locations?: { line: number }[] };
    return new OperatorMistake(
      `The schema snapshot is not a valid GraphQL schema (${placeIn(path, locations?.[0]?.line)}): ` +
        `${shortened(message.split('\n\n')).join('\n')} ` +
        'Correct the file, or set RECRUITING_SCHEMA to another one.',
      { cause },
    );
  };
  let read: ReturnType<typeof withoutFederation>;
  try {
    read = withoutFederation(parse(source));
  } catch (error) {
    throw refused(error);
  }
  if (read.hiding.length > 0) throw hidingDirectives(read.hiding, path);
  if (read.unknown.length > 0) throw unknownDirectives(read.unknown, path);
  try {
    const schema = buildASTSchema(read.document);
    assertValidSchema(schema);
    return schema;
  } catch (error) {
    throw refused(error);
  }
}

function hidingDirectives(directives: readonly UndefinedDirective[], path: string) {
  const names = directives.map(({ name }) => `@${name}`);
  return new OperatorMistake(
    `The schema snapshot (${placeIn(path, directives[0]!.line)}) uses ${names.join(' and ')}, by which a supergraph ` +
      'hides or protects fields. The gateway would neither hide nor protect them. Remove the fields that callers ' +
      'must not see, and these directives, from the file.',
  );
}

function unknownDirectives(directives: readonly UndefinedDirective[], path: string) {
  const names = directives.map(
    ({ name, count }) => `@${name}${count > 1 ? ` (${count} times)` : ''}`,
  );
  return new OperatorMistake(
    `The schema snapshot (${placeIn(path, directives[0]!.line)}) uses directives that it does not define: ` +
      `${names.join(', ')}. Define them in the file, or remove them: the gateway ignores them.`,
  );
}

function placeIn(path: string, line: number | undefined): string {
  return line === undefined ? path : `${path}, line ${line}`;
}

const SHOWN = 5;

/** Returns the first mistakes: usually they cause the others. */
function shortened(mistakes: readonly string[]): string[] {
  const more = mistakes.length - SHOWN;
  return more > 0 ? [...mistakes.slice(0, SHOWN), `(and ${more} more)`] : [...mistakes];
}

/** These are valid, but the library that wraps schemas confuses them with its own types of the same names. */
function usesOfIntrospection(schema: GraphQLSchema): string[] {
  return Object.values(schema.getTypeMap())
    .filter((type) => !isIntrospectionType(type))
    .flatMap((type) => {
      if (isInputObjectType(type)) {
        const fields = Object.values(type.getFields()).filter(isOfIntrospection);
        return fields.map(({ name }) => `${type.name}.${name}`);
      }
      if (!isObjectType(type) && !isInterfaceType(type)) return [];
      return Object.values(type.getFields()).flatMap((field) => [
        ...(isOfIntrospection(field) ? [`${type.name}.${field.name}`] : []),
        ...field.args
          .filter(isOfIntrospection)
          .map(({ name }) => `${type.name}.${field.name}(${name}:)`),
      ]);
    });
}

function isOfIntrospection({ type }: { type: GraphQLInputType | GraphQLOutputType }): boolean {
  return isIntrospectionType(getNamedType(type));
}

/** The published interface has no subscriptions, and the gateway cannot serve any. */
function withoutSubscriptions(schema: GraphQLSchema): GraphQLSchema {
  const { subscription, types, ...config } = schema.toConfig();
  if (!subscription) return schema;
  return new GraphQLSchema({ ...config, types: types.filter((type) => type !== subscription) });
}
