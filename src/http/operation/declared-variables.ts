import type { VariableDefinitionNode } from 'graphql';
import { Json, membersIn, parseJson } from '../../json.ts';
import type { CallVariables } from '../../plans/call.ts';
import { bytesOf } from '../hold-requests.ts';

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
  readonly #given: GivenVariables['given'];

  /** @param values coerced */
  constructor(
    values: CallVariables['values'],
    definitions: readonly VariableDefinitionNode[],
    { given, written }: GivenVariables,
  ) {
    this.values = values;
    this.#given = written === undefined ? onlyOf(given, definitions) : NONE;
    this.#written = written === undefined ? undefined : cutOut(written, definitions);
  }

  /** Their memory. */
  get bytes(): number {
    if (this.#written) return bytesOf(this.values) + bytesOf([...this.#written.values()]);
    return bytesOf(this.#given) + bytesOf(this.values, { countsTexts: false });
  }

  text(name: string): string | undefined {
    if (this.#written) return this.#written.get(name);
    return Object.hasOwn(this.#given, name) ? JSON.stringify(this.#given[name]) : undefined;
  }

  given(name: string): unknown {
    const written = this.#written?.get(name);
    if (written === undefined)
      return Object.hasOwn(this.#given, name) ? this.#given[name] : undefined;
    const json = parseJson(written);
    return json instanceof Json ? json.value : JSON.parse(written);
  }
}

const NONE = {};

/** The given values themselves, if there are no others: most requests give only what their operation declares. */
function onlyOf(
  given: GivenVariables['given'],
  definitions: readonly VariableDefinitionNode[],
): GivenVariables['given'] {
  const names = definitions.map(nameOf).filter((name) => Object.hasOwn(given, name));
  if (names.length === Object.keys(given).length) return given;
  return Object.fromEntries(names.map((name) => [name, given[name]]));
}

/** Copies the members: a part of a string keeps the whole string in memory. */
function cutOut(
  text: string,
  definitions: readonly VariableDefinitionNode[],
): ReadonlyMap<string, string> {
  const members = membersIn(text, new Set(definitions.map(nameOf)));
  for (const [name, member] of members) members.set(name, Buffer.from(member).toString());
  return members;
}

function nameOf({ variable }: VariableDefinitionNode): string {
  return variable.name.value;
}
