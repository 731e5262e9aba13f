import {
  Kind,
  valueFromASTUntyped,
  visit,
  type DefinitionNode,
  type DirectiveNode,
  type DocumentNode,
} from 'graphql';

/** A directive that an SDL document uses without defining it. */
export interface UndefinedDirective {
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
export function withoutFederation(document: DocumentNode) {
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
  const found = new Map<string, UndefinedDirective>();
  visit(document, {
    Directive: ({ name: { value: name }, loc }) => {
      if (defined.has(name) || BUILT_IN.has(name)) return false;
      const { count, line } = found.get(name) ?? { count: 0, line: loc?.startToken.line };
      found.set(name, { name, count: count + 1, line });
      return false;
    },
  });
  return [...found.values()];
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

function argumentsOf({ arguments: given = [] }: DirectiveNode): Record<string, unknown> {
  return Object.fromEntries(
    given.map(({ name, value }) => [name.value, valueFromASTUntyped(value)]),
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
