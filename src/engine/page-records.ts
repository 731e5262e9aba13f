import type { AnswerError } from './answer.ts';

type Values = readonly (readonly unknown[])[];

/** The records of a page, as an operation selects them. Walks share them, since nobody can change them. */
export class PageRecords {
  /** Of each place; undefined when only a text is left. */
  #values: Values | undefined;
  readonly #errors: readonly (readonly AnswerError[] | undefined)[];
  #taken: Buffer | undefined;

  /**
   * @param values as each place of the operation selects them: `nodes`, and each `edges { node }`
   * @param errors by the offsets of their records. Their paths begin with the index in `values`, and are empty for an
   *   error of the whole list
   */
  constructor(values: Values, errors: readonly (readonly AnswerError[] | undefined)[]) {
    this.#values = values;
    this.#errors = errors;
  }

  /** A record as JSON. Nobody may change it. */
  valueAt(offset: number, place = 0): unknown {
    return this.#values![place]![offset] ?? null;
  }

  errorsAt(offset: number): readonly AnswerError[] {
    return this.#errors[offset] ?? NONE;
  }

  /** The JSON of records, with commas between them. */
  textOf(offsets: readonly number[]): Buffer {
    const all = this.#values![0]!;
    const values = offsets.length === all.length ? all : offsets.map((offset) => all[offset]);
    // Written together, they take a third of the time.
    return Buffer.from(JSON.stringify(values).slice(1, -1));
  }

  /**
   * Does the same once for all readers of a walk, which keeps its pages for later ones. Only the text is left then. They
   * take the same records: a reader who may not take all of them fails behind this page.
   */
  take(offsets: readonly number[]): Buffer {
    this.#taken ??= this.textOf(offsets);
    this.#values = undefined;
    return this.#taken;
  }
}

const NONE: readonly AnswerError[] = [];
