import {
  buildClientSchema,
  lexicographicSortSchema,
  parseValue,
  printSchema,
  type IntrospectionQuery,
} from 'graphql';

/**
 * Reads the answer to an introspection query. A flawed part that the rest can do without is left out: what has no usable
 * name, or a type that the schema does not have, and a default value that is not GraphQL.
 *
 * @param answer with or without `data` around it
 * @returns also what was left out, and why, each by its coordinate
 * @throws Error if what is left is not a schema
 */
export function readIntrospection(answer: unknown) {
  const { data } = answer as { data?: IntrospectionQuery };
  const { __schema: described } = data ?? (answer as IntrospectionQuery);
  if (!Array.isArray(described?.types)) throw new Error('It has no __schema with types.');
  const types = described.types.filter(({ name }) => !name.startsWith('__'));
  const known = new Set(types.map(({ name }) => name).filter(isName));
  const warnings: string[] = [];
  const leaveOut = (what: string, why: string) =>
    void warnings.push(`The schema of the service is used without ${what}: ${why}.`);

  /** Returns a part without its flaws; nothing if it is not usable. */
  const withoutFlaws = (place: string, part: Part): Part[] => {
    const { name, kind, type, defaultValue = null } = part;
    const typeName = type ? namedType(type) : kind && name;
    if (!isName(name) || (typeName !== undefined && !known.has(typeName))) {
      leaveOut(place, 'its name is not one of GraphQL, or the schema does not have its type');
      return [];
    }
    const isFlawed = defaultValue !== null && !isGraphql(defaultValue);
    if (isFlawed) leaveOut(`the default value of ${place}`, 'it is not a GraphQL value');
    const kept: Part = { ...part, ...(isFlawed && { defaultValue: null }) };
    for (const list of LISTS) {
      kept[list] &&= kept[list].flatMap((each) => withoutFlaws(`${place}.${each.name}`, each));
    }
    return [kept];
  };

  const parts = { types, directives: described.directives } as unknown as Record<string, Part[]>;
  const usable = {
    ...described,
    types: parts['types']!.flatMap((type) => withoutFlaws(type.name, type)),
    directives: parts['directives']!.flatMap((each) => withoutFlaws(`@${each.name}`, each)),
  };
  const schema = buildClientSchema({ __schema: usable as never });
  // Some services list their types in a different order each time.
  return { sdl: `${printSchema(lexicographicSortSchema(schema))}\n`, warnings };
}

const LISTS = [
  'fields',
  'interfaces',
  'possibleTypes',
  'enumValues',
  'inputFields',
  'args',
] as const;

/** A type, a reference to one, a directive, or a part of these: each has a name, and other parts in lists. */
interface Part extends Partial<Record<(typeof LISTS)[number], Part[] | null>> {
  readonly name: string;
  /** Of a type, or a reference to one. */
  readonly kind?: string;
  /** Of a field or an input. */
  readonly type?: TypeRef;
  readonly defaultValue?: string | null;
}

interface TypeRef {
  readonly name: string;
  readonly ofType?: TypeRef | null;
}

/** Names that begin with __ belong to introspection. */
function isName(name: string): boolean {
  return /^(?!__)[A-Za-z_]\w*$/.test(name);
}

function namedType({ name, ofType }: TypeRef): string {
  return ofType ? namedType(ofType) : name;
}

function isGraphql(value: string): boolean {
  try {
    parseValue(value);
    return true;
  } catch {
    return false;
  }
}
