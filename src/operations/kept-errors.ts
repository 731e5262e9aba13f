import { GraphQLError, type Source } from 'graphql';

/** Errors of a document, kept without their stacks: one that was not read keeps what was on it alive, about 60 KB. */
export class KeptErrors {
  /** The memory that they take, estimated. */
  readonly bytes: number;
  readonly #errors: readonly Pick<GraphQLError, 'message' | 'positions' | 'extensions'>[];
  readonly #source: Source;

  constructor(errors: readonly GraphQLError[], source: Source) {
    this.#errors = errors.map(({ message, positions, extensions }) => ({
      message,
      positions,
      extensions,
    }));
    this.#source = source;
    this.bytes = this.#errors.reduce(
      (sum, { message, positions = [] }) =>
        sum + BYTES_OF_ERROR + textBytes(message) + 16 * positions.length,
      0,
    );
  }

  /** Makes the errors again, each time new ones: their receiver may change them. */
  made(): readonly GraphQLError[] {
    if (this.#errors.length === 0) return NONE;
    const source = this.#source;
    return this.#errors.map(
      ({ message, positions, extensions }) =>
        new GraphQLError(message, { source, positions, extensions: { ...extensions } }),
    );
  }
}

const NONE: readonly GraphQLError[] = [];
const BYTES_OF_ERROR = 400;

/** Of the characters of a text that may have others than those of Latin-1. */
export function textBytes(text: string): number {
  return 2 * text.length;
}
