import { isNonNullType, type GraphQLObjectType } from 'graphql';
import type { UpstreamAnswer } from '../upstream/request.ts';
import { withPath, type Answer, type AnswerError } from './answer.ts';
import type { Call } from './call.ts';
import type { Shared } from './shared.ts';
import type { JsonObject } from './json.ts';
import { compileMend, mended, type Mend } from './mend.ts';
import { rootPart, type PreparedOperation } from './prepared-operation.ts';
import { isSelected, type SelectedField } from './selected-fields.ts';
import { readServiceAnswer, type ServiceAnswer } from './service-answer.ts';
import { ServiceRequest } from './service-request.ts';

/** The service's part of an answer: the whole answer to an operation of which it answers every field. */
export interface Forwarded extends Answer {
  /** Null or undefined if the service returned no data. */
  readonly data: JsonObject | null | undefined;
  /** Whether all data of the answer are null. */
  readonly isNull: boolean;
  /** Undefined: the request failed. */
  readonly isExecuted: boolean;
}

/** The fields of an operation that the service answers itself: one request, as the caller wrote them. */
export class ForwardedFields {
  readonly #root: GraphQLObjectType;
  readonly #fields: readonly SelectedField[];
  readonly #mend: Mend | undefined;
  readonly #request: ServiceRequest;
  /** Whether an answer without errors is the answer to the operation as it is. */
  readonly #staysText: boolean;

  /** @param all the fields of the root @param forwarded those of them that need the service */
  constructor(
    shared: Shared,
    prepared: PreparedOperation,
    root: GraphQLObjectType,
    all: readonly SelectedField[],
    forwarded: readonly SelectedField[],
  ) {
    this.#root = root;
    this.#fields = forwarded;
    const names = new Set(forwarded.map(({ name }) => name));
    this.#mend = compileMend(shared, prepared, root, forwarded);
    const isWhole = all.every(({ name }) => names.has(name) || name === '__typename');
    this.#staysText = isWhole && !this.#mend;
    const part = isWhole ? prepared : rootPart(prepared, forwarded);
    const { selections } = part.definition.selectionSet;
    this.#request = new ServiceRequest(shared.served, part, selections);
  }

  /** Whether any of them is selected with these values of the variables. */
  isSelected(values: Readonly<Record<string, unknown>>): boolean {
    return this.#fields.some((field) => isSelected(field, values));
  }

  async answer(call: Call): Promise<Forwarded> {
    let answered: UpstreamAnswer;
    try {
      const { sent } = call.variables;
      answered = await call.ask(this.#request.with(sent), this.#request.pages);
      call.hold(answered, answered.bytes.length);
      return await this.#read(call, answered);
    } catch (thrown) {
      return this.#failed(call, thrown);
    }
  }

  #read(call: Call, answered: UpstreamAnswer): Forwarded | Promise<Forwarded> {
    if (this.#staysText && answered.isPlainData) return new PlainData(answered);
    return this.#parsed(call, answered);
  }

  async #parsed(call: Call, answered: UpstreamAnswer): Promise<Forwarded> {
    const { data, errors: ofService, extensions } = readServiceAnswer(answered);
    const errors: AnswerError[] = ofService.map((service) => ({ service }));
    if (this.#mend && data) {
      const inside = await mended(this.#mend, data, call);
      for (const { error, path } of inside) errors.push(withPath(error, path));
    }
    const isUnchanged = !this.#mend && errors.length === 0;
    return {
      data,
      errors,
      extensions,
      isNull: data === null,
      bytes: isUnchanged ? answered.bytes : undefined,
      isExecuted: true,
    };
  }

  /** The request failed: the error is reported once, at the first field. */
  #failed(call: Call, thrown: unknown): Forwarded {
    const { values } = call.variables;
    const selected = this.#fields.filter((field) => isSelected(field, values));
    const isNull = selected.some(({ name }) => isNonNullType(this.#root.getFields()[name]!.type));
    const path = [selected[0]!.key];
    return {
      data: undefined,
      errors: [{ thrown, path }],
      extensions: undefined,
      isNull,
      bytes: undefined,
      isExecuted: false,
    };
  }
}

/**
 * Data without errors, of which nothing changes. It is parsed only for those who read values, since to parse it, only to
 * check it, takes some 30 us of a page. So broken JSON that begins and ends like data reaches the caller as the service
 * wrote it.
 */
class PlainData implements Forwarded {
  readonly errors = [];
  readonly isNull = false;
  readonly isExecuted = true;
  readonly #answered: UpstreamAnswer;
  #parsed: ServiceAnswer | undefined;

  constructor(answered: UpstreamAnswer) {
    this.#answered = answered;
  }

  get bytes(): Buffer {
    return this.#answered.bytes;
  }

  get data(): JsonObject | null | undefined {
    return this.#read().data;
  }

  get extensions(): JsonObject | undefined {
    return this.#read().extensions;
  }

  #read(): ServiceAnswer {
    return (this.#parsed ??= readServiceAnswer(this.#answered));
  }
}
