import type { VariableDefinitionNode } from 'graphql';
import { Json, membersIn, parseJson } from '../../json.ts';
import type { CallVariables } from '../../plans/call.ts';

/** The variables of a request. */
export interface GivenVariables {
  readonly given: Readonly<Record<string, unknown>>;
  /** Their text, if the values are not enough to write them again. */
  readonly written: string | undefined;
}

/**
 * The variables that an operation declares, and nothing else of its request: a request may give others of any size, and
 * a walk that several callers share outlives the request that began it.
 */
export class DeclaredVariables implements CallVariables {
  readonly values: CallVariables['values'];
  /** As they were written; undefined if `#given` has them. */
  readonly #written: ReadonlyMap<string, string> | undefined;
  readonly #given = new Map<string, unknown>();

  /** @param values coerced */
  constructor(
    values: CallVariables['values'],
    definitions: readonly VariableDefinitionNode[],
    { given, written }: GivenVariables,
  ) {
    this.values = values;
    const names = definitions.map(({ variable }) => variable.name.value);
    if (written !== undefined) {
      this.#written = cutOut(written, new Set(names));
      return;
    }
    for (const name of names) {
      if (Object.hasOwn(given, name)) this.#given.set(name, given[name]);
    }
  }

  text(name: string): string | undefined {
    if (this.#written) return this.#written.get(name);
    return JSON.stringify(this.#given.get(name));
  }

  given(name: string): unknown {
    const written = this.#written?.get(name);
    if (written === undefined) return this.#given.get(name);
    const json = parseJson(written);
    return json instanceof Json ? json.value : JSON.parse(written);
  }
}

/** Copies the members: a part of a string keeps the whole string in memory. */
function cutOut(text: string, names: ReadonlySet<string>): ReadonlyMap<string, string> {
  const members = membersIn(text, names);
  for (const [name, member] of members) members.set(name, Buffer.from(member).toString());
  return members;
}
