import {
  isCompositeType,
  Kind,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type ASTNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLSchema,
} from 'graphql';
import { isIncremental, withoutIncremental } from '../incremental-directives.ts';

interface Settling {
  schema: GraphQLSchema;
  /** The `all…` fields, as `Query.allPersons`. */
  drains: ReadonlySet<string>;
  /** The lists that are streamed without the executor. */
  streamed: ReadonlySet<FieldNode>;
  /** Whether the executor may put off what is inside of this one of them. */
  mayDefer: (field: FieldNode) => boolean;
}

/**
 * The document for the executor: without the `@stream` of what is streamed without it, and with nothing that
 * is put off inside of `all…` fields that come whole, of which it would keep a megabyte for a thousand things.
 */
export function settleDirectives(document: DocumentNode, settling: Settling): DocumentNode {
  const { schema, drains, streamed, mayDefer } = settling;
  const plain = plainFragments(document);
  let isUsed = false;
  const types = new TypeInfo(schema);
  const settled = visit(
    document,
    visitWithTypeInfo(types, {
      Field: (field) => {
        const parent = types.getParentType();
        const isDrain = isCompositeType(parent) && drains.has(`${parent.name}.${field.name.value}`);
        const isStreamed = streamed.has(field);
        if (isDrain && !(isStreamed && mayDefer(field))) {
          isUsed = true;
          return plain.inside(field);
        }
        return isStreamed ? withoutStream(field) : undefined;
      },
    }),
  );
  return isUsed
    ? { ...settled, definitions: [...settled.definitions, ...plain.fragments] }
    : settled;
}

function withoutStream({ directives = [], ...field }: FieldNode): FieldNode {
  return { ...field, directives: directives.filter((directive) => !isIncremental(directive)) };
}

/** Copies of the fragments that put something off, which put off nothing. */
function plainFragments({ definitions }: DocumentNode) {
  const fragments = definitions.filter((one) => one.kind === Kind.FRAGMENT_DEFINITION);
  const names = new Map<string, string>();
  // A fragment that spreads one of them is one of them.
  for (let before = -1; before < names.size;) {
    before = names.size;
    for (const fragment of fragments) {
      const { value: name } = fragment.name;
      if (!names.has(name) && putsOff(fragment, names)) names.set(name, freeName(name, fragments));
    }
  }
  const inside = <Node extends ASTNode>(node: Node): Node =>
    visit(withoutIncremental(node), {
      FragmentSpread: (spread) => {
        const value = names.get(spread.name.value);
        return value === undefined ? undefined : { ...spread, name: { kind: Kind.NAME, value } };
      },
    });
  return {
    inside,
    fragments: fragments.flatMap((fragment): FragmentDefinitionNode[] => {
      const value = names.get(fragment.name.value);
      return value === undefined ? [] : [{ ...inside(fragment), name: { kind: Kind.NAME, value } }];
    }),
  };
}

function putsOff(fragment: FragmentDefinitionNode, names: ReadonlyMap<string, string>): boolean {
  let found = false;
  visit(fragment, {
    Directive: (directive) => void (found ||= isIncremental(directive)),
    FragmentSpread: ({ name }) => void (found ||= names.has(name.value)),
  });
  return found;
}

function freeName(name: string, fragments: readonly FragmentDefinitionNode[]): string {
  let free = `${name}_whole`;
  while (fragments.some((each) => each.name.value === free)) free += '_';
  return free;
}
