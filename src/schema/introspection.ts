import {
  assertName,
  assertValidSchema,
  buildClientSchema,
  lexicographicSortSchema,
  parseValue,
  printSchema,
  type IntrospectionQuery,
} from 'graphql';

/** A schema that was described by an introspection. */
interface Described {
  /** Sorted, because some services list their types in a different order each time. */
  readonly sdl: string;
  /** What was left out, and why, each by its coordinate. */
  readonly warnings: readonly string[];
}

/**
 * Reads the answer to an introspection query. A flawed part that the rest can do without is left out: a type, a field
 * or an optional argument whose name or type is not usable, and a default value that is not GraphQL.
 *
 * @param answer with or without `data` around it
 * @throws Error if what is left is not a valid schema
 */
export function readIntrospection(answer: unknown): Described {
  const { data } = answer as { data?: IntrospectionQuery };
  const { __schema: described } = data ?? (answer as IntrospectionQuery);
  if (!Array.isArray(described?.types)) throw new Error('It has no __schema with types.');
  const warnings: string[] = [];
  let { types, directives } = described as unknown as Record<'types' | 'directives', Part[]>;
  // What is left out may be the type, or the only field, of something else.
  for (let before = -1; before < warnings.length;) {
    before = warnings.length;
    const names = types.map(({ name }) => name).filter((name) => !name.startsWith('__'));
    const read = { known: new Set(names), warnings };
    types = types.flatMap((type) =>
      type.name.startsWith('__') ? [type] : withoutFlaws(read, type.name, type),
    );
    directives = directives.flatMap((each) => withoutFlaws(read, `@${each.name}`, each));
  }
  const schema = buildClientSchema({ __schema: { ...described, types, directives } as never });
  assertValidSchema(schema);
  return { sdl: `${printSchema(lexicographicSortSchema(schema))}\n`, warnings };
}

/** A type, a directive, or a part of one: each has a name, and other parts in lists. */
interface Part extends Partial<Record<(typeof LISTS)[number], Part[] | null>> {
  readonly name: string;
  readonly kind?: string;
  /** Of a field or an input. */
  readonly type?: TypeRef;
  readonly defaultValue?: unknown;
}

interface TypeRef {
  readonly kind: string;
  readonly name: string;
  readonly ofType?: TypeRef | null;
}

const LISTS = [
  'fields',
  'interfaces',
  'possibleTypes',
  'enumValues',
  'inputFields',
  'args',
] as const;

interface Reading {
  /** The names of the types that fields and inputs may have. */
  readonly known: ReadonlySet<string>;
  readonly warnings: string[];
}

/** Returns the part without its flaws; nothing if it is not usable. */
function withoutFlaws(reading: Reading, place: string, part: Part, isReference = false): Part[] {
  const { known, warnings } = reading;
  const leaveOut = (what: string, why: string): Part[] => {
    warnings.push(`The schema of the service is used without ${what}: ${why}.`);
    return [];
  };
  const flaw = isReference ? flawOfReference(part, known) : flawOf(part, known);
  if (flaw !== undefined) return leaveOut(place, flaw);
  const kept = { ...part };
  for (const list of LISTS) {
    const members = part[list];
    // Those of an interface follow from the types.
    if (!members || (list === 'possibleTypes' && part.kind !== 'UNION')) continue;
    const isInput = list === 'args' || list === 'inputFields';
    const areReferences = list === 'interfaces' || list === 'possibleTypes';
    const placeOf = ({ name }: Part) =>
      areReferences ? `${name} of ${place}` : isInput ? `${place}(${name}:)` : `${place}.${name}`;
    const usable = members.flatMap((member) =>
      withoutFlaws(reading, placeOf(member), member, areReferences),
    );
    const lost = members.find(
      ({ name, type }) => type?.kind === 'NON_NULL' && usable.every((each) => each.name !== name),
    );
    if (isInput && lost) return leaveOut(place, `it requires ${lost.name}`);
    const mayBeEmpty = list === 'interfaces' || list === 'args';
    if (usable.length === 0 && !mayBeEmpty) return leaveOut(place, 'nothing is left of it');
    kept[list] = usable;
  }
  if (isGraphql(part.defaultValue)) return [kept];
  leaveOut(`the default value of ${place}`, 'it is not a GraphQL value');
  return [{ ...kept, defaultValue: null }];
}

function flawOfReference({ name }: Part, known: ReadonlySet<string>): string | undefined {
  return known.has(name) ? undefined : 'the schema does not have this type';
}

function flawOf({ name, type }: Part, known: ReadonlySet<string>): string | undefined {
  if (name.startsWith('__')) return 'names with __ belong to GraphQL';
  try {
    assertName(name);
  } catch {
    return 'this is not a name of GraphQL';
  }
  const named = type && namedType(type);
  if (named === undefined || known.has(named)) return undefined;
  return `its type ${named} is not one that the schema has`;
}

function namedType({ name, ofType }: TypeRef): string {
  return ofType ? namedType(ofType) : name;
}

function isGraphql(value: unknown): boolean {
  if (typeof value !== 'string') return true;
  try {
    parseValue(value);
    return true;
  } catch {
    return false;
  }
}
