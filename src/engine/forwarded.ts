import { isNonNullType, type GraphQLObjectType } from 'graphql';
import type { UpstreamAnswer } from '../upstream/request.ts';
import { errorsBelow, type Answer } from './answer.ts';
import type { Call } from './call.ts';
import { compileMend, mended } from './mend.ts';
import { rootPart, type PreparedOperation } from './prepared-operation.ts';
import { selectedNow, type SelectedField } from './selected-fields.ts';
import { failed, readServiceAnswer, type ServiceAnswer } from './service-answer.ts';
import { serviceRequest } from './service-request.ts';
import type { Shared } from './shared.ts';

/**
 * Compiles the fields of an operation that the service answers itself: one request, as the caller wrote them.
 *
 * @param all the fields of the root @param fields those of them that need the service
 * @returns answers the whole operation if the service answers every field of it
 */
export function forwardedFields(
  shared: Shared,
  prepared: PreparedOperation,
  root: GraphQLObjectType,
  all: readonly SelectedField[],
  fields: readonly SelectedField[],
): (call: Call) => Promise<Answer> {
  const mending = compileMend(shared, prepared, [root], fields);
  const isWhole = all.every((field) => fields.includes(field) || field.name === '__typename');
  const part = isWhole ? prepared : rootPart(prepared, fields);
  const { selections } = part.definition.selectionSet;
  const request = serviceRequest(shared.served, part, selections);

  const parsed = async (call: Call, answered: UpstreamAnswer): Promise<Answer> => {
    const answer = readServiceAnswer(answered);
    if (!mending) {
      return { ...answer, bytes: answer.errors.length === 0 ? answered.bytes : undefined };
    }
    const inside = answer.data ? await mended(mending, answer.data, call) : [];
    return { ...answer, errors: [...answer.errors, ...inside] };
  };
  /** The request failed: the error is reported once, at the first field. */
  const withoutAnswer = ({ variables: { values } }: Call, thrown: unknown): Answer => {
    const [first, ...others] = selectedNow(fields, values);
    const isNull = [first!, ...others].some(({ name }) =>
      isNonNullType(root.getFields()[name]!.type),
    );
    const data = selectedNow(all, values).map(({ key, name }) => {
      return [key, name === '__typename' ? root.name : null] as const;
    });
    return {
      data: isNull ? null : Object.fromEntries(data),
      errors: errorsBelow([first!.key], failed(thrown).errors),
    };
  };

  return async (call) => {
    try {
      const answered = await call.ask(request.outgoing(call.variables.sent), request.pages);
      call.hold(answered, answered.bytes.length);
      if (isWhole && !mending && answered.isPlainData) return new PlainData(answered);
      return await parsed(call, answered);
    } catch (thrown) {
      return withoutAnswer(call, thrown);
    }
  };
}

/**
 * Data without errors, of which nothing changes. It is parsed only for those who read values, since to parse it, only to
 * check it, takes some 30 us of a page. So broken JSON that begins and ends like data reaches the caller as the service
 * wrote it.
 */
class PlainData implements Answer {
  // A class: each object literal with getters has a hidden class of its own, which took a fifth of the CPU of a page.
  readonly errors = [];
  readonly #answered: UpstreamAnswer;
  #parsed: ServiceAnswer | undefined;

  constructor(answered: UpstreamAnswer) {
    this.#answered = answered;
  }

  get bytes(): Answer['bytes'] {
    return this.#answered.bytes;
  }

  get data(): Answer['data'] {
    return this.#read().data;
  }

  get extensions(): Answer['extensions'] {
    return this.#read().extensions;
  }

  #read(): ServiceAnswer {
    return (this.#parsed ??= readServiceAnswer(this.#answered));
  }
}
