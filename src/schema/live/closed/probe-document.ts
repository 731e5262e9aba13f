import {
  getNamedType,
  isCompositeType,
  isInputObjectType,
  isRequiredArgument,
  isRequiredInputField,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLSchema,
} from 'graphql';
import type { Part, SnapshotParts, Step } from './snapshot-parts.ts';

/**
 * A query that uses parts of the snapshot, and a field that cannot exist:
 *
 *     query (
 *       $v0: Int
 *     ) {
 *       ... @skip(if: true) {
 *         noSuchFieldToCheckTheSchema
 *         persons(
 *           first: $v0
 *         ) {
 *           ... on PersonPage {
 *
 * A service that validates refuses it, and lists what it does not know. One that does not validate has nothing to
 * execute. Each part has lines of its own, because services report the line of each mistake, whatever their words are.
 */
export interface ProbeDocument {
  readonly text: string;
  /** The part that each line uses, from line 1 at index 0. */
  readonly lines: readonly (Part | undefined)[];
  readonly impossible: Impossible;
}

interface Impossible {
  readonly name: string;
  readonly line: number;
}

interface Selections {
  readonly fields: Map<string, SelectedField>;
  readonly members: Map<string, { readonly part: Part; readonly selections: Selections }>;
}

interface SelectedField {
  readonly part: Part;
  readonly inputs: Map<string, Given>;
  readonly selections: Selections;
}

/** An argument or a field of an input object: a variable, or an object with these fields. */
interface Given {
  readonly part: Part;
  readonly type: GraphQLInputType;
  readonly inside: Map<string, Given>;
}

/** @returns undefined if no query can use these parts */
export function probeDocument(
  wanted: readonly Part[],
  parts: SnapshotParts,
  snapshot: GraphQLSchema,
): ProbeDocument | undefined {
  const root = emptySelections();
  const values: Part[] = [];
  let used = 0;
  for (const part of wanted) if (use(part)) used += 1;
  if (used === 0) return undefined;

  const lines: (readonly [string, Part | undefined])[] = [];
  const variables: (readonly [string, Part])[] = [];
  const put = (depth: number, text: string, part?: Part) =>
    void lines.push([`${'  '.repeat(depth)}${text}`, part]);
  const impossible = impossibleField(snapshot);
  const defaults = values.map((part) => {
    const name = variable(`${part.holder} = ${part.name}`, part);
    return [`${name.slice(1)}: ${name}`, part] as const;
  });
  putSelections(root, 2);
  const selected = lines.splice(0);
  if (variables.length > 0) {
    put(0, 'query (');
    for (const [text, part] of variables) put(1, text, part);
    put(0, ') {');
  } else put(0, 'query {');
  put(1, '... @skip(if: true) {');
  const line = lines.length + 1;
  put(2, `${impossible}${defaults.length > 0 ? '(' : ''}`);
  for (const [text, part] of defaults) put(3, text, part);
  if (defaults.length > 0) put(2, ')');
  lines.push(...selected);
  put(1, '}');
  put(0, '}');
  return {
    text: lines.map(([text]) => text).join('\n'),
    lines: lines.map(([, part]) => part),
    impossible: { name: impossible, line },
  };

  function use(part: Part): boolean {
    if (part.kind === 'value') return values.push(part) > 0;
    if (part.kind === 'input') return useInput(part);
    const holder = selectionsOf(part.holder);
    if (!holder) return false;
    if (part.kind === 'member') memberOf(holder, part);
    else {
      const field = fieldOf(holder, { ...part, kind: 'field' });
      if (part.kind === 'argument') giveArgument(field, part.argument!);
    }
    return true;
  }

  function useInput(part: Part): boolean {
    const place = parts.inputPlace(part.holder);
    const holder = place && selectionsOf(place.holder);
    if (!holder) return false;
    const { holder: type, field: name, argument } = place;
    const field = fieldOf(holder, { kind: 'field', holder: type, name });
    let given = giveArgument(field, argument);
    for (const step of [...place.fields, part]) given = giveField(given, step.name);
    return true;
  }

  function selectionsOf(type: string): Selections | undefined {
    return parts.stepsTo(type)?.reduce<Selections>(into, root);
  }

  function into(selections: Selections, step: Step): Selections {
    return step.kind === 'member'
      ? memberOf(selections, step)
      : fieldOf(selections, step).selections;
  }

  function memberOf({ members }: Selections, part: Part): Selections {
    const known = members.get(part.name) ?? { part, selections: emptySelections() };
    members.set(part.name, known);
    return known.selections;
  }

  function fieldOf({ fields }: Selections, { holder, name }: Part): SelectedField {
    const known = fields.get(name);
    if (known) return known;
    const part = { kind: 'field', holder, name } as const;
    const field = { part, inputs: new Map<string, Given>(), selections: emptySelections() };
    fields.set(name, field);
    for (const argument of parts.argumentsOf(holder, name)) {
      if (isRequiredArgument(argument)) giveArgument(field, argument.name);
    }
    return field;
  }

  function giveArgument({ part, inputs }: SelectedField, argument: string): Given {
    const known = inputs.get(argument);
    if (known) return known;
    const { type } = parts
      .field(part.holder, part.name)
      .args.find(({ name }) => name === argument)!;
    const given = {
      part: { ...part, kind: 'argument', argument } as const,
      type,
      inside: new Map(),
    };
    inputs.set(argument, given);
    return given;
  }

  function giveField({ type, inside }: Given, name: string): Given {
    const object = getNamedType(type) as GraphQLInputObjectType;
    const give = (field: string): Given => {
      const known = inside.get(field);
      if (known) return known;
      const part = { kind: 'input', holder: object.name, name: field } as const;
      const given = { part, type: object.getFields()[field]!.type, inside: new Map() };
      inside.set(field, given);
      return given;
    };
    for (const field of Object.values(object.getFields())) {
      const isGiven = parts.has({ kind: 'input', holder: object.name, name: field.name });
      if (isGiven && isRequiredInputField(field)) give(field.name);
    }
    return give(name);
  }

  function putSelections({ fields, members }: Selections, depth: number): void {
    for (const { part, inputs, selections } of fields.values()) {
      const type = getNamedType(parts.field(part.holder, part.name).type);
      const opens = isCompositeType(type);
      put(depth, `${part.name}${inputs.size > 0 ? '(' : opens ? ' {' : ''}`, part);
      if (inputs.size > 0) {
        for (const [name, given] of inputs) putGiven(name, given, depth + 1);
        put(depth, opens ? ') {' : ')');
      }
      if (!opens) continue;
      put(depth + 1, `... on ${type.name} {`, part);
      put(depth + 2, '__typename');
      putSelections(selections, depth + 2);
      put(depth + 1, '}');
      put(depth, '}');
    }
    for (const [name, { part, selections }] of members) {
      put(depth, `... on ${name} {`, part);
      put(depth + 1, '__typename');
      putSelections(selections, depth + 1);
      put(depth, '}');
    }
  }

  function putGiven(name: string, { part, type, inside }: Given, depth: number): void {
    if (inside.size === 0) {
      // Only as a variable that may not be null can it be the one field of a @oneOf input.
      const isOneOf = part.kind === 'input' && isOneOfInput(snapshot, part.holder);
      put(depth, `${name}: ${variable(`${String(type)}${isOneOf ? '!' : ''}`, part)}`, part);
      return;
    }
    put(depth, `${name}: {`, part);
    for (const [field, given] of inside) putGiven(field, given, depth + 1);
    put(depth, '}');
  }

  function variable(definition: string, part: Part): string {
    const name = `$v${variables.length}`;
    variables.push([`${name}: ${definition}`, part]);
    return name;
  }
}

function emptySelections(): Selections {
  return { fields: new Map(), members: new Map() };
}

function isOneOfInput(snapshot: GraphQLSchema, name: string): boolean {
  const type = snapshot.getType(name);
  return isInputObjectType(type) && type.isOneOf;
}

/** A name that is neither in the snapshot nor like one: services suggest names that are. */
export function impossibleField(snapshot: GraphQLSchema): string {
  let name = 'noSuchFieldToCheckTheSchema';
  while (snapshot.getQueryType()?.getFields()[name]) name += '_';
  return name;
}
