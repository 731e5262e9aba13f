import type { SelectionNode } from 'graphql';
import type { ByIdField } from '../schema/derived.ts';
import type { JsonObject } from './json.ts';
import type { ServiceError } from './answer.ts';
import { ResultUnion } from './result-union.ts';
import { rootValue, type PlacedValue, type ServiceAnswer } from './service-answer.ts';
import type { Shared } from './shared.ts';
import { argumentNode, fieldNode, variableDefinitionNode } from './syntax.ts';

/** Several records in one request, each by a field of the service that returns it by its id. */
export class ByIds {
  readonly #by: ByIdField;
  readonly #result: ResultUnion;

  constructor({ served: { upstreamType } }: Shared, by: ByIdField) {
    this.#by = by;
    this.#result = new ResultUnion(by.result, upstreamType);
  }

  /** The fields that select these of each record, with the definitions of their variables. */
  select(selections: readonly SelectionNode[], records: number) {
    const { field, argument } = this.#by;
    const each = Array.from({ length: records }, (_, at) => at);
    const fields = each.map((at) =>
      fieldNode(field, {
        alias: keyAt(at),
        args: [argumentNode(argument.name, variableAt(at))],
        selections: this.#result.select(selections),
      }),
    );
    const variables = each.map((at) => variableDefinitionNode(variableAt(at), argument.type));
    return { fields, variables };
  }

  /** The values of the variables. @param ids as JSON */
  values(ids: readonly string[]): JsonObject {
    return Object.fromEntries(ids.map((id, at) => [variableAt(at), JSON.parse(id) as unknown]));
  }

  /** @param at the index of the record in the request @returns with the error that the service returned as data */
  read(
    answer: ServiceAnswer,
    at: number,
  ): PlacedValue & { readonly failure: ServiceError | undefined } {
    const placed = rootValue(answer, keyAt(at));
    return { ...placed, failure: this.#result.failureIn(placed.value) };
  }
}

function keyAt(at: number): string {
  return `_rsRecord${at}`;
}

function variableAt(at: number): string {
  return `_rsKey${at}`;
}
