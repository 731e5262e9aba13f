import type { SelectionNode, VariableDefinitionNode } from 'graphql';
import { causeOf, SizeRefusedError } from '../paging/page.ts';
import type { ByIdField } from '../schema/derived.ts';
import type { OutgoingRequest } from '../upstream/request.ts';
import type { JsonObject } from './json.ts';
import type { PreparedOperation } from './prepared-operation.ts';
import { ResultUnion } from './result-union.ts';
import { failedForSize, memberOf, ServiceFailure, type PlacedValue } from './service-answer.ts';
import { ServiceRequest } from './service-request.ts';
import type { Shared } from './shared.ts';
import { argumentNode, fieldNode, variableDefinitionNode } from './syntax.ts';

/** How some records are requested. */
interface Requesting<T> {
  /** The values of the caller's variables. */
  readonly sent: JsonObject;
  /** The values of further variables of the gateway. */
  readonly added?: JsonObject;
  /** Returns the data of the answer. @param pages the cost */
  readonly ask: (request: OutgoingRequest, pages: number) => Promise<PlacedValue>;
  /** Reads what the service returned for an id. */
  readonly read: (placed: PlacedValue) => Promise<T>;
}

/** Several records in one request, each by a field of the service that returns it by its id. Compiled once. */
export class ByIds {
  readonly #result: ResultUnion;
  readonly #make: (records: number) => ServiceRequest;
  readonly #requests = new Map<number, ServiceRequest>();

  /** @param selections of each record @param added further variables of the gateway */
  constructor(
    { served }: Shared,
    prepared: PreparedOperation,
    { field, argument, result }: ByIdField,
    selections: readonly SelectionNode[],
    added: readonly VariableDefinitionNode[] = [],
  ) {
    this.#result = new ResultUnion(result, served.upstreamType);
    const selected = this.#result.select(selections);
    this.#make = (records) => {
      const each = Array.from({ length: records }, (_, at) => at);
      const fields = each.map((at) => {
        const args = [argumentNode(argument.name, variableAt(at))];
        return fieldNode(field, { alias: keyAt(at), args, selections: selected });
      });
      const ids = each.map((at) => variableDefinitionNode(variableAt(at), argument.type));
      return new ServiceRequest(served, prepared, fields, [...added, ...ids]);
    };
  }

  /** The request for a number of records. */
  request(records: number): ServiceRequest {
    const request = this.#requests.get(records) ?? this.#make(records);
    this.#requests.set(records, request);
    return request;
  }

  /**
   * Requests records together, and singly if that fails as a whole: one bad id fails only itself then. The single
   * requests cost nothing more.
   *
   * @param ids as JSON
   */
  async load<T>(
    ids: readonly string[],
    requesting: Requesting<T>,
  ): Promise<readonly (T | Error)[]> {
    const { sent, added, ask, read } = requesting;
    const answerTo = (some: readonly string[], cost: 0 | 1) => {
      const request = this.request(some.length);
      const keys = some.map((id, at) => [variableAt(at), JSON.parse(id) as unknown] as const);
      const outgoing = request.with(sent, { ...added, ...Object.fromEntries(keys) });
      return ask(outgoing, cost * request.pages);
    };
    const readAt = async (data: PlacedValue, at: number) => {
      const placed = memberOf(data, keyAt(at));
      const failure = this.#result.failureIn(placed.value);
      if (failure) throw new ServiceFailure([failure]);
      return read(placed);
    };
    const orError = (reading: Promise<T>) => reading.catch((error: Error) => error);
    const together = await answerTo(ids, 1).catch((error: unknown) => {
      if (ids.length === 1 || !mayBeOfOneId(error)) throw error;
    });
    if (together && (together.value || ids.length === 1)) {
      return Promise.all(ids.map((_, at) => orError(readAt(together, at))));
    }
    const single = (id: string) => orError(answerTo([id], 0).then((data) => readAt(data, 0)));
    const firstTwo = await Promise.all(ids.slice(0, 2).map(single));
    // If two ids fail for the same reason, the request itself is wrong, whatever the ids are.
    const [one, other] = firstTwo;
    if (one instanceof Error && other instanceof Error && one.message === other.message) {
      return ids.map((_, at) => firstTwo[at] ?? one);
    }
    return [...firstTwo, ...(await Promise.all(ids.slice(2).map(single)))];
  }
}

/** Whether a request failed because of what it asks for. */
function mayBeOfOneId(error: unknown): boolean {
  return (
    failedForSize(error) ||
    error instanceof SizeRefusedError ||
    causeOf(error) instanceof ServiceFailure
  );
}

function keyAt(at: number): string {
  return `_rsRecord${at}`;
}

function variableAt(at: number): string {
  return `_rsKey${at}`;
}
