import type { FieldNode } from 'graphql';
import { codedError } from '../errors.ts';
import { PageFailedError } from '../paging/page.ts';
import type { NestedAdapter } from '../schema/derived.ts';
import type { Shared } from './shared.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import { ResultUnion } from './result-union.ts';
import { rootValue, valueBelow, type PlacedValue, type ServiceAnswer } from './service-answer.ts';
import { argumentNode, fieldNode, variableDefinitionNode } from './syntax.ts';

/**
 * How a nested list is requested: from the root, through the field that returns its parent by its id. Several parents
 * share a request.
 */
export class WayToParent {
  readonly #adapter: NestedAdapter;
  readonly #result: ResultUnion;

  constructor({ upstreamType }: Pick<Shared, 'upstreamType'>, adapter: NestedAdapter) {
    this.#adapter = adapter;
    this.#result = new ResultUnion(adapter.reach.result, upstreamType);
  }

  /**
   * Returns the id of a parent as JSON, which is how `values` takes it.
   *
   * @throws PageFailedError if the parent has none, so that it cannot be requested again
   */
  idOf(value: unknown): string {
    if (value !== null && value !== undefined) return JSON.stringify(value);
    const { parent } = this.#adapter;
    throw failed(
      `The recruiting service returned this ${parent} without an id, so its list cannot be requested.`,
    );
  }

  /** Puts the list into the field that returns its parent, for a number of parents. */
  wrap(list: FieldNode, parents: number) {
    const { field, argument } = this.#adapter.reach;
    const each = Array.from({ length: parents }, (_, at) => at);
    const fields = each.map((at) =>
      fieldNode(field, {
        alias: parentKey(at),
        args: [argumentNode(argument.name, variableFor(at))],
        selections: this.#result.select([list]),
      }),
    );
    const variables = each.map((at) => variableDefinitionNode(variableFor(at), argument.type));
    return { fields, variables };
  }

  /** The values of the variables for these parents. */
  values(ids: readonly string[]): JsonObject {
    return Object.fromEntries(ids.map((id, at) => [variableFor(at), JSON.parse(id) as unknown]));
  }

  /**
   * Finds the list of a parent in an answer.
   *
   * @param at the index of the parent in the request
   * @throws PageFailedError if there is no such parent any more
   */
  listIn(answer: ServiceAnswer, at: number): PlacedValue {
    const { parent, name } = this.#adapter;
    const placed = rootValue(answer, parentKey(at));
    const read = this.#result.read(placed.value);
    if (read.kind === 'missing') throw gone(parent);
    if (read.kind === 'failure') return { value: null, errors: [{ error: read.error, path: [] }] };
    if (!isJsonObject(placed.value) && placed.errors.length === 0) throw gone(parent);
    return valueBelow(placed, name);
  }
}

function parentKey(at: number): string {
  return `_rs_parent${at}`;
}

function variableFor(at: number): string {
  return `_rs_parentId${at}`;
}

function gone(parent: string): PageFailedError {
  return failed(
    `The recruiting service no longer has this ${parent}, so its list cannot be read. Request its parent again.`,
  );
}

function failed(message: string): PageFailedError {
  return new PageFailedError(message, { cause: codedError('UPSTREAM_BAD_RESPONSE', message) });
}
