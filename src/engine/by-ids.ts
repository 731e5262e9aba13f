import type { SelectionNode, VariableDefinitionNode } from 'graphql';
import { causeOf, SizeRefusedError } from '../paging/page.ts';
import type { ByIdField } from '../schema/derived.ts';
import type { OutgoingRequest } from '../upstream/request.ts';
import type { JsonObject } from './json.ts';
import type { PreparedOperation } from './prepared-operation.ts';
import { resultUnion } from './result-union.ts';
import { failedForSize, memberOf, ServiceFailure, type PlacedValue } from './service-answer.ts';
import { serviceRequest, type ServiceRequest } from './service-request.ts';
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

/**
 * Compiles how several records are requested together, each by a field of the service that returns it by its id.
 *
 * @param selections of each record @param added further variables of the gateway
 */
export function compileByIds(
  { served }: Shared,
  prepared: PreparedOperation,
  { field, argument, result }: ByIdField,
  selections: readonly SelectionNode[],
  added: readonly VariableDefinitionNode[] = [],
) {
  const { select, failureIn } = resultUnion(result, served.upstreamType);
  const requests = new Map<number, ServiceRequest>();
  const request = (records: number): ServiceRequest => {
    const known = requests.get(records);
    if (known) return known;
    const each = Array.from({ length: records }, (_, at) => at);
    const fields = each.map((at) => {
      const args = [argumentNode(argument.name, variableAt(at))];
      return fieldNode(field, { alias: keyAt(at), args, selections: select(selections) });
    });
    const ids = each.map((at) => variableDefinitionNode(variableAt(at), argument.type));
    const made = serviceRequest(served, prepared, fields, [...added, ...ids]);
    requests.set(records, made);
    return made;
  };
  return {
    /** The request for a number of records. */
    request,
    /**
     * Requests records together, and singly if that fails as a whole: one bad id fails only itself then. The single
     * requests cost nothing more.
     *
     * @param ids as JSON
     */
    load: async <T>(
      ids: readonly string[],
      requesting: Requesting<T>,
    ): Promise<readonly (T | Error)[]> => {
      const answerTo = (some: readonly string[], cost: 0 | 1) => {
        const { pages, outgoing } = request(some.length);
        const keys = some.map((id, at) => [variableAt(at), JSON.parse(id) as unknown] as const);
        const variables = { ...requesting.added, ...Object.fromEntries(keys) };
        return requesting.ask(outgoing(requesting.sent, variables), cost * pages);
      };
      const readAt = async (data: PlacedValue, at: number) => {
        const placed = memberOf(data, keyAt(at));
        const failure = failureIn(placed.value);
        if (failure) throw new ServiceFailure([failure]);
        return requesting.read(placed);
      };
      const together = await answerTo(ids, 1).catch((error: unknown) => {
        if (ids.length === 1 || !mayBeOfOneId(error)) throw error;
      });
      if (together && (together.value || ids.length === 1)) {
        return Promise.all(ids.map((_, at) => readAt(together, at).catch(asError)));
      }
      const single = (id: string) =>
        answerTo([id], 0)
          .then((data) => readAt(data, 0))
          .catch(asError);
      const firstTwo = await Promise.all(ids.slice(0, 2).map(single));
      // If two ids fail for the same reason, the request itself is wrong, whatever the ids are.
      const [one, other] = firstTwo;
      if (one instanceof Error && other instanceof Error && one.message === other.message) {
        return ids.map((_, at) => firstTwo[at] ?? one);
      }
      return [...firstTwo, ...(await Promise.all(ids.slice(2).map(single)))];
    },
  };
}

function asError(thrown: unknown): Error {
  return thrown as Error;
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
