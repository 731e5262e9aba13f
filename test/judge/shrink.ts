import {
  Kind,
  parse,
  print,
  validate,
  visit,
  type ASTNode,
  type DocumentNode,
  type GraphQLSchema,
} from 'graphql';
import type { Operation } from './operation.ts';

/** Makes an operation smaller, part by part, as long as it is valid and `stillDiffers`. */
export async function shrink(
  operation: Operation,
  schema: GraphQLSchema,
  stillDiffers: (operation: Operation) => Promise<boolean>,
): Promise<Operation> {
  let smallest = operation;
  for (let tries = 0; tries < MOST_TRIES;) {
    const before = smallest.query.length;
    for (let place = 0; tries < MOST_TRIES; place += 1) {
      const smaller = withoutPart(smallest, place);
      if (!smaller) break;
      if (smaller.query.length >= smallest.query.length || !isValid(schema, smaller.query))
        continue;
      tries += 1;
      if (!(await stillDiffers(smaller))) continue;
      smallest = smaller;
      place -= 1;
    }
    if (smallest.query.length === before) return smallest;
  }
  return smallest;
}

const MOST_TRIES = 1_500;

function isValid(schema: GraphQLSchema, query: string): boolean {
  try {
    return validate(schema, parse(query)).length === 0;
  } catch {
    // A selection set without selections.
    return false;
  }
}

/** Removes or simplifies the part of this number. @returns undefined if there is no such part */
function withoutPart({ query, variables }: Operation, place: number): Operation | undefined {
  let index = -1;
  let isFound = false;
  const isNext = () => {
    index += 1;
    if (index === place) isFound = true;
    return index === place;
  };
  const document = parse(query, { noLocation: true });
  const bodies = new Map(
    document.definitions.flatMap((each) =>
      each.kind === Kind.FRAGMENT_DEFINITION ? ([[each.name.value, each]] as const) : [],
    ),
  );
  const change = (node: ASTNode): ASTNode | null | undefined => {
    if (isNext()) return null;
    if (node.kind === Kind.FIELD && node.alias && isNext()) {
      const { alias: _, ...plain } = node;
      return plain;
    }
    if (node.kind === Kind.FRAGMENT_SPREAD && isNext()) {
      const { typeCondition, selectionSet } = bodies.get(node.name.value)!;
      return {
        kind: Kind.INLINE_FRAGMENT,
        typeCondition,
        selectionSet,
        directives: node.directives ?? [],
      };
    }
    return undefined;
  };
  const smaller = visit(document, {
    Field: change,
    InlineFragment: change,
    FragmentSpread: change,
    Directive: change,
    Argument: change,
    SelectionSet: (node) => {
      for (const each of node.selections) {
        if (each.kind === Kind.INLINE_FRAGMENT && isNext()) {
          return {
            ...node,
            selections: node.selections.flatMap((one) =>
              one === each ? each.selectionSet.selections : [one],
            ),
          };
        }
      }
      return undefined;
    },
  });
  return isFound ? { ...pruned(smaller), variables: usedOf(smaller, variables) } : undefined;
}

/** Without the fragments and variables that nothing uses any more. */
function pruned(document: DocumentNode): { readonly query: string } {
  const fragments = namesIn(document, Kind.FRAGMENT_SPREAD);
  const kept = visit(document, {
    FragmentDefinition: ({ name }) => (fragments.has(name.value) ? undefined : null),
  });
  if (kept.definitions.length < document.definitions.length) return pruned(kept);
  const variables = variablesIn(kept);
  const query = print(
    visit(kept, {
      VariableDefinition: ({ variable }) => (variables.has(variable.name.value) ? undefined : null),
    }),
  );
  return { query };
}

function usedOf(document: DocumentNode, variables: Operation['variables']): Operation['variables'] {
  const used = variablesIn(document);
  return Object.fromEntries(Object.entries(variables).filter(([name]) => used.has(name)));
}

function namesIn(document: DocumentNode, kind: Kind.FRAGMENT_SPREAD): Set<string> {
  const names = new Set<string>();
  visit(document, {
    [kind]: (node: { name: { value: string } }) => void names.add(node.name.value),
  });
  return names;
}

function variablesIn(document: DocumentNode): Set<string> {
  const names = new Set<string>();
  visit(document, {
    VariableDefinition: () => false,
    Variable: ({ name }) => void names.add(name.value),
  });
  return names;
}
