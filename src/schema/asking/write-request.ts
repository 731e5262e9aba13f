import {
  isAbstractType,
  Kind,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type ASTNode,
  type DefinitionNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLSchema,
} from 'graphql';
import { isIncremental } from '../incremental-directives.ts';
import type { QuestionContext, UpstreamLink, WantedRides } from './upstream-link.ts';

/** An operation as it is sent, in the upstream's names. */
export interface WrittenRequest {
  readonly document: DocumentNode;
  /** The same in served names. */
  readonly served: DocumentNode;
  /** The variables in it. */
  readonly used: ReadonlySet<string>;
}

/** Writes one operation that asks these root fields; their names in the answer differ. */
export function writeRequest(
  link: UpstreamLink,
  fields: readonly FieldNode[],
  context: QuestionContext,
  rides: WantedRides,
): WrittenRequest {
  const asked = documentOf(fields, context);
  const ridden = link.writeRides(asked, context.variables, rides);
  const written = withTypenames(ridden === asked ? asked : onlyReached(ridden), link.schema);
  const used = variablesOf(written);
  const served = onlyDefined(written, used);
  return { document: link.toUpstream(served), served, used };
}

/** Fragments on derived types are written out where they stood, and the upstream does not know them. */
function onlyReached({ definitions }: DocumentNode): DocumentNode {
  const fragments = new Map(
    definitions.flatMap((definition) =>
      definition.kind === Kind.FRAGMENT_DEFINITION ? [[definition.name.value, definition]] : [],
    ),
  );
  const [operation] = definitions;
  return operation
    ? { kind: Kind.DOCUMENT, definitions: [operation, ...reachedFrom(operation, fragments)] }
    : { kind: Kind.DOCUMENT, definitions };
}

function documentOf(
  fields: readonly FieldNode[],
  { operation, variableDefinitions, fragments }: QuestionContext,
): DocumentNode {
  const definition: DefinitionNode = {
    kind: Kind.OPERATION_DEFINITION,
    operation,
    variableDefinitions,
    selectionSet: { kind: Kind.SELECTION_SET, selections: fields },
  };
  const reached = reachedFrom(definition, new Map(Object.entries(fragments)));
  return { kind: Kind.DOCUMENT, definitions: [definition, ...reached] };
}

function reachedFrom(
  start: ASTNode,
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
): readonly FragmentDefinitionNode[] {
  const reached = new Map<string, FragmentDefinitionNode>();
  const reach = (node: ASTNode) => {
    visit(node, {
      FragmentSpread: ({ name: { value } }) => {
        const fragment = fragments.get(value);
        if (!fragment || reached.has(value)) return;
        reached.set(value, fragment);
        reach(fragment);
      },
    });
  };
  reach(start);
  return [...reached.values()];
}

/**
 * The gateway has to know which type a record of an abstract type has, whether the caller asks or not. What
 * comes later is between the caller and us.
 */
function withTypenames(document: DocumentNode, schema: GraphQLSchema): DocumentNode {
  const types = new TypeInfo(schema);
  return visit(
    document,
    visitWithTypeInfo(types, {
      SelectionSet: (node) =>
        isAbstractType(types.getParentType())
          ? { ...node, selections: [...node.selections, TYPENAME] }
          : undefined,
      Directive: (node) => (isIncremental(node) ? null : undefined),
    }),
  );
}

const TYPENAME: FieldNode = { kind: Kind.FIELD, name: { kind: Kind.NAME, value: '__typename' } };

function variablesOf(document: DocumentNode): Set<string> {
  const used = new Set<string>();
  visit(document, {
    VariableDefinition: () => false,
    Variable: ({ name }) => void used.add(name.value),
  });
  return used;
}

function onlyDefined(document: DocumentNode, used: ReadonlySet<string>): DocumentNode {
  return visit(document, {
    VariableDefinition: (node) => (used.has(node.variable.name.value) ? false : null),
  });
}
