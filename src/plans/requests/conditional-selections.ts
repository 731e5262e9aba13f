import {
  isCompositeType,
  Kind,
  type DocumentNode,
  type FieldNode,
  type GraphQLCompositeType,
  type GraphQLSchema,
  type SelectionNode,
} from 'graphql';

/** Selections of one object, each with the condition under which it counts. */
export type ConditionalSelections = readonly {
  readonly condition: Condition;
  readonly selections: readonly SelectionNode[];
}[];

/** The fields with one response name, merged (specification, 5.3.2) for all possible values of the variables. */
export interface ConditionalField {
  /** The type that the field is selected on: within an abstract type it may be one of the possible types. */
  readonly on: GraphQLCompositeType;
  /** The first field: all have the same arguments. */
  readonly node: FieldNode;
  readonly condition: Condition;
  readonly below: ConditionalSelections;
}

/** True if one of its reasons is: if the reason's variables have these values and the outer condition is true. */
export interface Condition {
  readonly at: number;
  readonly reasons: Reason[];
}

interface Reason {
  readonly outer: Condition;
  readonly wanted: readonly { readonly variable: string; readonly value: boolean }[];
}

export type Holds = (condition: Condition) => boolean;

export interface Conditions {
  readonly always: Condition;
  create(...reasons: Reason[]): Condition;
  /** @returns a function that evaluates each condition once, however many others depend on it */
  decide(has: (wanted: Reason['wanted'][number]) => boolean): Holds;
}

export function createConditions(): Conditions {
  let count = 0;
  const create = (...reasons: Reason[]): Condition => ({ at: count++, reasons });
  const always = create();
  return {
    always,
    create,
    decide: (has) => {
      const decided: (boolean | undefined)[] = Array.from({ length: count });
      decided[always.at] = true;
      const holds: Holds = ({ at, reasons }) =>
        (decided[at] ??= reasons.some(({ outer, wanted }) => wanted.every(has) && holds(outer)));
      return holds;
    },
  };
}

/**
 * Collects the fields selected of one object, those of fragments included, for all types that the object may have and
 * all values of the variables.
 *
 * A fragment is visited once per object, however often it is spread there: another spread adds a reason to the same
 * condition. Writing the reasons out would double them with each fragment that spreads the next one twice.
 */
export function conditionalSelections({
  schema,
  document,
  conditions,
}: {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly conditions: Conditions;
}) {
  const fragments = new Map(
    document.definitions
      .filter((one) => one.kind === Kind.FRAGMENT_DEFINITION)
      .map((fragment) => [fragment.name.value, fragment]),
  );

  return (all: ConditionalSelections, type: GraphQLCompositeType): ConditionalField[] => {
    const fields = new Map<string, ConditionalField & { readonly below: Selections[] }>();
    const spread = new Map<string, Condition>();
    for (const { condition, selections } of all) collect(selections, type, condition);
    return [...fields.values()];

    function collect(
      selections: readonly SelectionNode[],
      on: GraphQLCompositeType,
      outer: Condition,
    ): void {
      for (const selection of selections) {
        const wanted = wantedBy(selection);
        if (wanted === 'never') continue;
        const reason: Reason = { outer, wanted };
        if (selection.kind === Kind.FIELD) addField(selection, on, reason);
        else if (selection.kind === Kind.INLINE_FRAGMENT) {
          const { typeCondition, selectionSet } = selection;
          collect(
            selectionSet.selections,
            narrowed(on, typeCondition?.name.value),
            conditions.create(reason),
          );
        } else addSpread(selection.name.value, on, reason);
      }
    }

    function addField(node: FieldNode, on: GraphQLCompositeType, reason: Reason): void {
      const name = `${on.name} ${(node.alias ?? node.name).value}`;
      const field = fields.get(name) ?? { on, node, condition: conditions.create(), below: [] };
      fields.set(name, field);
      field.condition.reasons.push(reason);
      const selections = node.selectionSet?.selections;
      if (selections) field.below.push({ condition: conditions.create(reason), selections });
    }

    function addSpread(name: string, on: GraphQLCompositeType, reason: Reason): void {
      const known = spread.get(name);
      if (known) return void known.reasons.push(reason);
      const fragment = fragments.get(name);
      if (!fragment) return;
      const condition = conditions.create(reason);
      spread.set(name, condition);
      const { typeCondition, selectionSet } = fragment;
      collect(selectionSet.selections, narrowed(on, typeCondition.name.value), condition);
    }
  };

  function narrowed(on: GraphQLCompositeType, name: string | undefined): GraphQLCompositeType {
    const type = name === undefined ? undefined : schema.getType(name);
    return isCompositeType(type) ? type : on;
  }
}

type Selections = ConditionalSelections[number];

/** The values of variables that `@skip` and `@include` require. */
function wantedBy({ directives = [] }: SelectionNode): Reason['wanted'] | 'never' {
  const wanted: Reason['wanted'][number][] = [];
  for (const { name, arguments: given = [] } of directives) {
    if (name.value !== 'skip' && name.value !== 'include') continue;
    const value = name.value === 'include';
    const decider = given.find((argument) => argument.name.value === 'if')?.value;
    if (decider?.kind === Kind.BOOLEAN && decider.value !== value) return 'never';
    if (decider?.kind === Kind.VARIABLE) wanted.push({ variable: decider.name.value, value });
  }
  return wanted;
}
