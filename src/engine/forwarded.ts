import type { GraphQLObjectType } from 'graphql';
import type { UpstreamAnswer } from '../upstream/request.ts';
import type { Answer } from './answer.ts';
import type { Call } from './call.ts';
import { compileMend, mended } from './mend.ts';
import { rootPart, type PreparedOperation } from './prepared-operation.ts';
import type { SelectedField } from './selected-fields.ts';
import { readServiceAnswer, type ServiceAnswer } from './service-answer.ts';
import { serviceRequest } from './service-request.ts';
import type { Shared } from './shared.ts';

/**
 * Compiles the fields of an operation that the service answers itself: one request, as the caller wrote them.
 *
 * @param isWhole whether the service answers every field of the operation, so that its answer is the whole one
 */
export function forwardedFields(
  shared: Shared,
  prepared: PreparedOperation,
  root: GraphQLObjectType,
  fields: readonly SelectedField[],
  isWhole: boolean,
): (call: Call) => Promise<Answer> {
  const mending = compileMend(shared, prepared, [root], fields);
  const part = isWhole ? prepared : rootPart(prepared, fields);
  const request = serviceRequest(shared.served, part, part.definition.selectionSet.selections);

  return async (call) => {
    const answered = await call.ask(request.outgoing(call.variables.sent), request.pages);
    call.hold(answered, answered.bytes.length);
    if (isWhole && !mending && answered.isPlainData) return new PlainData(answered);
    const answer = readServiceAnswer(answered);
    if (!mending) {
      return { ...answer, bytes: answer.errors.length === 0 ? answered.bytes : undefined };
    }
    const inside = answer.data ? await mended(mending, answer.data, call) : [];
    return { ...answer, errors: [...answer.errors, ...inside] };
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
