import { isNonNullType, type GraphQLObjectType } from 'graphql';
import type { UpstreamAnswer } from '../upstream/request.ts';
import { withPath, type Answer, type AnswerError } from './answer.ts';
import type { Call } from './call.ts';
import type { Shared } from './shared.ts';
import type { JsonObject } from './json.ts';
import { compileMend, mended, type Mend } from './mend.ts';
import { rootPart, type PreparedOperation } from './prepared-operation.ts';
import { isSelected, selectedNow, type SelectedField } from './selected-fields.ts';
import { readServiceAnswer, type ServiceAnswer } from './service-answer.ts';
import { ServiceRequest } from './service-request.ts';

/** The fields of an operation that the service answers itself: one request, as the caller wrote them. */
export class ForwardedFields {
  readonly #root: GraphQLObjectType;
  readonly #all: readonly SelectedField[];
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
    this.#all = all;
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

  /** The answer to the whole operation if the service answers every field of it. */
  async answer(call: Call): Promise<Answer> {
    try {
      const answered = await call.ask(this.#request.with(call.variables.sent), this.#request.pages);
      call.hold(answered, answered.bytes.length);
      if (this.#staysText && answered.isPlainData) return new PlainData(answered);
      return await this.#parsed(call, answered);
    } catch (thrown) {
      return this.#failed(call, thrown);
    }
  }

  async #parsed(call: Call, answered: UpstreamAnswer): Promise<Answer> {
    const { data, errors: ofService, extensions } = readServiceAnswer(answered);
    const errors: AnswerError[] = ofService.map((service) => ({ service }));
    if (this.#mend && data) {
      const inside = await mended(this.#mend, data, call);
      for (const { error, path } of inside) errors.push(withPath(error, path));
    }
    const isUnchanged = !this.#mend && errors.length === 0;
    return { data, errors, extensions, bytes: isUnchanged ? answered.bytes : undefined };
  }

  /** The request failed: the error is reported once, at the first field. */
  #failed({ variables: { values } }: Call, thrown: unknown): Answer {
    const fields = this.#root.getFields();
    const failed = selectedNow(this.#fields, values);
    const isNull = failed.some(({ name }) => isNonNullType(fields[name]!.type));
    const data = selectedNow(this.#all, values).map(({ key, name }) => {
      return [key, name === '__typename' ? this.#root.name : null] as const;
    });
    return {
      data: isNull ? null : Object.fromEntries(data),
      errors: [{ thrown, path: [failed[0]!.key] }],
    };
  }
}

/**
 * Data without errors, of which nothing changes. It is parsed only for those who read values, since to parse it, only to
 * check it, takes some 30 us of a page. So broken JSON that begins and ends like data reaches the caller as the service
 * wrote it.
 */
class PlainData implements Answer {
  readonly errors = [];
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
