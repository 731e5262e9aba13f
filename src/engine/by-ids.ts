import type { SelectionNode, VariableDefinitionNode } from 'graphql';
import { SizeRefusedError } from '../paging/page.ts';
import type { ByIdField } from '../schema/derived.ts';
import type { JsonObject } from './json.ts';
import type { ServiceError } from './answer.ts';
import type { PreparedOperation } from './prepared-operation.ts';
import { ResultUnion } from './result-union.ts';
import {
  failedForSize,
  rootValue,
  type PlacedValue,
  type ServiceAnswer,
} from './service-answer.ts';
import { ServiceRequest } from './service-request.ts';
import type { Shared } from './shared.ts';
import { argumentNode, fieldNode, variableDefinitionNode } from './syntax.ts';

/** Several records in one request, each by a field of the service that returns it by its id. Compiled once. */
export class ByIds {
  /** The request for a number of records. */
  readonly request: (records: number) => ServiceRequest;
  readonly #result: ResultUnion;

  /** @param selections of each record @param added further variables of the gateway */
  constructor(
    { served }: Shared,
    prepared: PreparedOperation,
    { field, argument, result }: ByIdField,
    selections: readonly SelectionNode[],
    added: readonly VariableDefinitionNode[] = [],
  ) {
    this.#result = new ResultUnion(result, served.upstreamType);
    const requests = new Map<number, ServiceRequest>();
    this.request = (records) => {
      const known = requests.get(records);
      if (known) return known;
      const each = Array.from({ length: records }, (_, at) => at);
      const fields = each.map((at) =>
        fieldNode(field, {
          alias: keyAt(at),
          args: [argumentNode(argument.name, variableAt(at))],
          selections: this.#result.select(selections),
        }),
      );
      const ids = each.map((at) => variableDefinitionNode(variableAt(at), argument.type));
      const made = new ServiceRequest(served, prepared, fields, [...added, ...ids]);
      requests.set(records, made);
      return made;
    };
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

/**
 * Loads several values in one request, and singly if that fails as a whole: one bad id fails only itself then.
 *
 * @param pages returns the cost of a request for a number of ids; the single ones cost nothing more
 * @param read returns the value of the id at an index of the request
 */
export async function loadTogether<T>(
  ids: readonly string[],
  pages: (ids: number) => number,
  ask: (ids: readonly string[], pages: number) => Promise<ServiceAnswer>,
  read: (answer: ServiceAnswer, at: number) => Promise<T>,
): Promise<readonly (T | Error)[]> {
  const failing = (reading: Promise<T>) => reading.catch((error: Error) => error);
  const answer = await ask(ids, pages(ids.length)).catch((error: unknown) => {
    const isTooBig = failedForSize(error) || error instanceof SizeRefusedError;
    if (!isTooBig || ids.length === 1) throw error;
    return undefined;
  });
  if (answer && (answer.data || ids.length === 1)) {
    return Promise.all(ids.map((_, at) => failing(read(answer, at))));
  }
  const single = async (id: string) => read(await ask([id], 0), 0);
  const firstTwo = await Promise.all(ids.slice(0, 2).map((id) => failing(single(id))));
  // If two ids fail for the same reason, the request itself is wrong, whatever the ids are.
  const reasons = firstTwo.map((record) => (record instanceof Error ? record.message : undefined));
  if (reasons[0] !== undefined && reasons[0] === reasons[1]) {
    return ids.map((_, at) => firstTwo[at] ?? firstTwo[0]!);
  }
  return [...firstTwo, ...(await Promise.all(ids.slice(2).map((id) => failing(single(id)))))];
}

function keyAt(at: number): string {
  return `_rsRecord${at}`;
}

function variableAt(at: number): string {
  return `_rsKey${at}`;
}
