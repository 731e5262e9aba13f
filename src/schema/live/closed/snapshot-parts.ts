import {
  getNamedType,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  type GraphQLArgument,
  type GraphQLEnumType,
  type GraphQLField,
  type GraphQLInputObjectType,
  type GraphQLNamedOutputType,
  type GraphQLSchema,
} from 'graphql';

/** A part of the snapshot that a query can use, and whose absence the service then reports. */
export interface Part {
  readonly kind: 'field' | 'argument' | 'member' | 'value' | 'input';
  /** The type that has it. */
  readonly holder: string;
  /** The name of the field, the member type, the enum value or the input field. */
  readonly name: string;
  /** Of a field, if the part is an argument. */
  readonly argument?: string;
}

/** A step from a type to another: through a field, or to a member of an abstract type. */
export type Step = Part & { readonly kind: 'field' | 'member' };

/** How a query can give a field of an input object: an argument, and fields of input objects inside it. */
interface InputPlace {
  readonly holder: string;
  readonly field: string;
  readonly argument: string;
  readonly fields: readonly { readonly holder: string; readonly name: string }[];
}

/** The parts of a snapshot that queries reach, without those that the service no longer has. */
export interface SnapshotParts {
  /** Fields with their arguments, and members of abstract types; types that are nearer to the root come first. */
  readonly selectable: readonly Part[];
  /** Enum values, and fields of input objects. */
  readonly givable: readonly Part[];
  /** Whether queries can use the type. */
  isReached(type: string): boolean;
  /** The shortest way from the root to a type. */
  stepsTo(type: string): readonly Step[] | undefined;
  inputPlace(type: string): InputPlace | undefined;
  has(part: Part): boolean;
  field(holder: string, name: string): GraphQLField<unknown, unknown>;
  /** The arguments of a field, without those that are gone. */
  argumentsOf(holder: string, field: string): readonly GraphQLArgument[];
}

export function keyOf({ kind, holder, name, argument }: Part): string {
  return `${kind} ${holder}.${name}${argument === undefined ? '' : `.${argument}`}`;
}

/**
 * @param gone keys of parts
 * @param closed types through which nothing can be requested
 */
export function partsOf(
  snapshot: GraphQLSchema,
  gone: ReadonlySet<string>,
  closed: ReadonlySet<string> = new Set(),
): SnapshotParts {
  const isThere = (part: Part) => !gone.has(keyOf(part));
  const ways = new Map<string, readonly Step[]>();
  const selectable: Part[] = [];
  const inputs = new Map<string, InputPlace>();
  const enums = new Map<string, GraphQLEnumType>();
  const used = new Set<string>();
  const query = snapshot.getQueryType()!;
  ways.set(query.name, []);
  const queue: GraphQLNamedOutputType[] = [query];
  for (const type of queue) {
    if (closed.has(type.name)) continue;
    const way = ways.get(type.name)!;
    const reach = (target: GraphQLNamedOutputType, step: Step) => {
      if (ways.has(target.name)) return;
      ways.set(target.name, [...way, step]);
      queue.push(target);
    };
    if (isAbstractType(type)) {
      for (const { name } of snapshot.getPossibleTypes(type)) {
        const part = { kind: 'member', holder: type.name, name } as const;
        if (!isThere(part)) continue;
        selectable.push(part);
        reach(snapshot.getType(name) as GraphQLNamedOutputType, part);
      }
    }
    if (!isObjectType(type) && !isInterfaceType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      const part = { kind: 'field', holder: type.name, name: field.name } as const;
      if (!isThere(part)) continue;
      selectable.push(part);
      for (const argument of argumentsOf(type.name, field.name)) {
        selectable.push({ ...part, kind: 'argument', argument: argument.name });
        const place = { holder: type.name, field: field.name, argument: argument.name, fields: [] };
        takeInput(argument, place);
      }
      const target = getNamedType(field.type);
      used.add(target.name);
      if (isEnumType(target)) enums.set(target.name, target);
      if (isCompositeType(target)) reach(target, part);
    }
  }
  return {
    selectable,
    givable: [...enums.values(), ...inputTypes()].flatMap(inner).filter(isThere),
    isReached: (name) => ways.has(name) || used.has(name),
    stepsTo: (type) => (closed.has(type) ? undefined : ways.get(type)),
    inputPlace: (type) => inputs.get(type),
    has: isThere,
    field: fieldOf,
    argumentsOf,
  };

  function argumentsOf(holder: string, name: string): readonly GraphQLArgument[] {
    return fieldOf(holder, name).args.filter((argument) =>
      isThere({ kind: 'argument', holder, name, argument: argument.name }),
    );
  }

  function fieldOf(holder: string, name: string): GraphQLField<unknown, unknown> {
    const type = snapshot.getType(holder);
    if (!isObjectType(type) && !isInterfaceType(type)) throw new Error(`${holder} has no fields`);
    return type.getFields()[name]!;
  }

  function takeInput({ type }: Pick<GraphQLArgument, 'type'>, place: InputPlace): void {
    const named = getNamedType(type);
    used.add(named.name);
    if (isEnumType(named)) enums.set(named.name, named);
    if (!isInputObjectType(named) || inputs.has(named.name)) return;
    inputs.set(named.name, place);
    for (const field of Object.values(named.getFields())) {
      if (!isThere({ kind: 'input', holder: named.name, name: field.name })) continue;
      const step = { holder: named.name, name: field.name };
      takeInput(field, { ...place, fields: [...place.fields, step] });
    }
  }

  function inputTypes(): GraphQLInputObjectType[] {
    return [...inputs.keys()].map((name) => snapshot.getType(name)).filter(isInputObjectType);
  }
}

function inner(type: GraphQLEnumType | GraphQLInputObjectType): Part[] {
  if (isEnumType(type)) {
    return type
      .getValues()
      .map(({ name }) => ({ kind: 'value' as const, holder: type.name, name }));
  }
  return Object.keys(type.getFields()).map((name) => ({ kind: 'input', holder: type.name, name }));
}
