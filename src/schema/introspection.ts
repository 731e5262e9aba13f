import {
  assertName,
  assertValidSchema,
  buildClientSchema,
  lexicographicSortSchema,
  parseValue,
  printSchema,
  type IntrospectionField,
  type IntrospectionInputValue,
  type IntrospectionNamedTypeRef,
  type IntrospectionQuery,
  type IntrospectionType,
  type IntrospectionTypeRef,
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
  const flaws = new Flaws();
  let { types, directives } = described;
  // What is left out may be the type, or the only field, of something else.
  for (let before = -1; before < flaws.warnings.length;) {
    before = flaws.warnings.length;
    flaws.known = new Set(types.map(({ name }) => name).filter((name) => !name.startsWith('__')));
    types = types.flatMap((type) => flaws.typeWithout(type));
    directives = directives.flatMap((directive) => {
      const args = flaws.inputsWithout(`@${directive.name}`, directive.args);
      return args ? [{ ...directive, args }] : [];
    });
  }
  const schema = buildClientSchema({ __schema: { ...described, types, directives } });
  assertValidSchema(schema);
  return { sdl: `${printSchema(lexicographicSortSchema(schema))}\n`, warnings: flaws.warnings };
}

class Flaws {
  readonly warnings: string[] = [];
  /** The names of the types that fields and arguments may have. */
  known: ReadonlySet<string> = new Set();

  /** Returns the type without its flaws; nothing if nothing is left of it. */
  typeWithout(type: IntrospectionType): IntrospectionType[] {
    const { name } = type;
    if (name.startsWith('__')) return [type];
    if (!this.#isUsable(name, name)) return [];
    switch (type.kind) {
      case 'SCALAR':
        return [type];
      case 'OBJECT':
      case 'INTERFACE': {
        const fields = type.fields.flatMap((field) => this.#fieldWithout(name, field));
        const interfaces = this.#typesOf(name, type.interfaces);
        return this.#isEmpty(name, fields) ? [] : [{ ...type, fields, interfaces }];
      }
      case 'UNION': {
        const possibleTypes = this.#typesOf(name, type.possibleTypes);
        return this.#isEmpty(name, possibleTypes) ? [] : [{ ...type, possibleTypes }];
      }
      case 'ENUM': {
        const enumValues = type.enumValues.filter((value) =>
          this.#isUsable(`${name}.${value.name}`, value.name),
        );
        return this.#isEmpty(name, enumValues) ? [] : [{ ...type, enumValues }];
      }
      case 'INPUT_OBJECT': {
        const inputFields = this.inputsWithout(name, type.inputFields);
        return !inputFields || this.#isEmpty(name, inputFields) ? [] : [{ ...type, inputFields }];
      }
    }
  }

  #fieldWithout(type: string, field: IntrospectionField): IntrospectionField[] {
    const place = `${type}.${field.name}`;
    if (!this.#isUsable(place, field.name, field.type)) return [];
    const args = this.inputsWithout(place, field.args);
    return args ? [{ ...field, args }] : [];
  }

  /** Returns arguments or fields of an input without flaws; undefined if a required one has a flaw. */
  inputsWithout(
    owner: string,
    inputs: readonly IntrospectionInputValue[],
  ): readonly IntrospectionInputValue[] | undefined {
    const usable = inputs.filter(({ name, type }) =>
      this.#isUsable(`${owner}(${name}:)`, name, type),
    );
    const lost = inputs.find((input) => !usable.includes(input) && input.type.kind === 'NON_NULL');
    if (lost) return void this.#leaveOut(owner, `it requires ${lost.name}`);
    return usable.map((input) => this.#withoutBadDefault(owner, input));
  }

  #withoutBadDefault(owner: string, input: IntrospectionInputValue): IntrospectionInputValue {
    if (typeof input.defaultValue !== 'string') return input;
    try {
      parseValue(input.defaultValue);
      return input;
    } catch {
      this.#leaveOut(`the default value of ${owner}(${input.name}:)`, 'it is not a GraphQL value');
      return { ...input, defaultValue: null };
    }
  }

  #typesOf<Ref extends IntrospectionNamedTypeRef>(
    owner: string,
    types: readonly Ref[] | null,
  ): readonly Ref[] {
    return (types ?? []).filter(({ name }) => {
      if (this.known.has(name)) return true;
      this.#leaveOut(`${name} of ${owner}`, 'the schema does not have this type');
      return false;
    });
  }

  #isUsable(place: string, name: string, type?: IntrospectionTypeRef): boolean {
    const typeName = type && nameOf(type);
    if (name.startsWith('__')) return this.#leaveOut(place, 'names with __ belong to GraphQL');
    try {
      assertName(name);
    } catch {
      return this.#leaveOut(place, 'this is not a name of GraphQL');
    }
    if (typeName === undefined || this.known.has(typeName)) return true;
    return this.#leaveOut(place, `its type ${typeName} is not one that the schema has`);
  }

  #isEmpty(place: string, members: readonly unknown[]): boolean {
    if (members.length > 0) return false;
    return !this.#leaveOut(place, 'nothing is left of it');
  }

  #leaveOut(place: string, why: string): false {
    this.warnings.push(`The schema of the service is used without ${place}: ${why}.`);
    return false;
  }
}

function nameOf(type: IntrospectionTypeRef): string {
  return 'ofType' in type && type.ofType ? nameOf(type.ofType) : (type as { name: string }).name;
}
