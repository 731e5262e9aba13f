import {
  getNamedType,
  isCompositeType,
  Kind,
  visit,
  type DocumentNode,
  type FieldNode,
  type GraphQLCompositeType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import { hasFields, LARGEST_PAGE, mayBePage } from '../schema/derived.ts';
import { fragmentsOf, type Fragments } from '../selections.ts';
import { areTrue } from './selected-fields.ts';

type Values = Readonly<Record<string, unknown>>;

/**
 * Makes the function that returns what a request costs in pages of the service, at least one: all records that it
 * requests, in full pages. Those of a list below another one count once for each record that is requested above them.
 */
export function costOf(schema: GraphQLSchema, document: DocumentNode): (values: Values) => number {
  const { definitions } = document;
  const operation = definitions.find(
    (definition): definition is OperationDefinitionNode =>
      definition.kind === Kind.OPERATION_DEFINITION,
  )!;
  const fragments = fragmentsOf(document);
  const root = schema.getRootType(operation.operation)!;
  const cost = (values: Values) =>
    Math.max(1, new Cost(schema, fragments, values).ofSet(root, operation.selectionSet, false));
  if (dependsOnVariables(document)) return cost;
  let once: number | undefined;
  return (values) => (once ??= cost(values));
}

/** Whether variables decide how many records are requested, or under which conditions. */
function dependsOnVariables(document: DocumentNode): boolean {
  let depends = false;
  visit(document, {
    Argument: ({ name, value }) => {
      if (['first', 'if'].includes(name.value)) depends ||= value.kind === Kind.VARIABLE;
    },
  });
  return depends;
}

/** The cost of one call. */
class Cost {
  readonly #schema: GraphQLSchema;
  readonly #fragments: Fragments;
  readonly #values: Values;
  /** A fragment has as many wherever it is spread, so that the time is bounded by the length of the document. */
  readonly #known = new Map<string, number>();

  constructor(schema: GraphQLSchema, fragments: Fragments, values: Values) {
    this.#schema = schema;
    this.#fragments = fragments;
    this.#values = values;
  }

  /** Counts pages; below a list, records. */
  ofSet(
    type: GraphQLCompositeType,
    { selections }: SelectionSetNode,
    isBelowList: boolean,
  ): number {
    let sum = 0;
    for (const selection of selections) {
      if (!areTrue(selection.directives ?? [], this.#values)) continue;
      if (selection.kind === Kind.FIELD) sum += this.#ofField(type, selection, isBelowList);
      else if (selection.kind === Kind.FRAGMENT_SPREAD)
        sum += this.#ofFragment(selection.name.value, isBelowList);
      else {
        const { typeCondition, selectionSet } = selection;
        sum += this.ofSet(
          this.#typeNamed(typeCondition?.name.value) ?? type,
          selectionSet,
          isBelowList,
        );
      }
    }
    return sum;
  }

  #ofFragment(name: string, isBelowList: boolean): number {
    const key = `${name} ${isBelowList}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const { typeCondition, selectionSet } = this.#fragments.get(name)!;
    const records = this.ofSet(
      this.#typeNamed(typeCondition.name.value)!,
      selectionSet,
      isBelowList,
    );
    this.#known.set(key, records);
    return records;
  }

  #ofField(parent: GraphQLCompositeType, node: FieldNode, isBelowList: boolean): number {
    const field = hasFields(parent) ? parent.getFields()[node.name.value] : undefined;
    const type = field && getNamedType(field.type);
    if (!type || !isCompositeType(type) || !node.selectionSet) return 0;
    const isList = mayBePage(this.#schema, type);
    const below = this.ofSet(type, node.selectionSet, isBelowList || isList);
    if (!isList) return below;
    const records = this.#first(node) * (1 + below);
    return isBelowList ? records : Math.ceil(records / LARGEST_PAGE);
  }

  /** A full page if the number of records has an unexpected form: the service refuses what it does not accept. */
  #first({ arguments: args = [] }: FieldNode): number {
    const value = args.find(({ name }) => name.value === 'first')?.value;
    const first = value?.kind === Kind.VARIABLE ? this.#values[value.name.value] : value;
    const count =
      typeof first === 'number'
        ? first
        : value?.kind === Kind.INT
          ? Number(value.value)
          : LARGEST_PAGE;
    return Math.min(Math.max(count, 1), LARGEST_PAGE);
  }

  #typeNamed(name: string | undefined): GraphQLCompositeType | undefined {
    const type = name === undefined ? undefined : this.#schema.getType(name);
    return isCompositeType(type) ? type : undefined;
  }
}
