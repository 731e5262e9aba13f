import type { FieldNode, VariableDefinitionNode } from 'graphql';
import { codedError, type ErrorCode } from '../errors.ts';
import { PageFailedError } from '../paging/page.ts';
import type { NestedAdapter } from '../schema/derived.ts';
import type { Shared } from './shared.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import { ResultUnion } from './result-union.ts';
import { rootValue, valueBelow, type PlacedValue, type ServiceAnswer } from './service-answer.ts';
import { argumentNode, fieldNode, variableDefinitionNode } from './syntax.ts';

/**
 * How a nested list is requested: from the root, through its parent. Either a field returns the parent by its id, so that
 * several parents share a request; or a path of fields without arguments leads to the only parent.
 */
export class WayToParent {
  /** Whether several parents can share a request. */
  readonly isBatched: boolean;
  readonly #adapter: NestedAdapter;
  readonly #steps: readonly { readonly field: string; readonly result: ResultUnion }[];

  constructor({ upstreamType }: Pick<Shared, 'upstreamType'>, adapter: NestedAdapter) {
    const { reach } = adapter;
    this.#adapter = adapter;
    this.isBatched = reach.kind === 'id';
    const steps =
      reach.kind === 'id' ? [reach] : reach.steps.map((field) => ({ field, result: undefined }));
    this.#steps = steps.map(({ field, result }) => ({
      field,
      result: new ResultUnion(result, upstreamType),
    }));
  }

  /**
   * Returns the id of a parent as JSON, which is how `values` takes it.
   *
   * @throws PageFailedError if the parent has none, so that it cannot be requested again
   */
  idOf(value: unknown): string {
    if (value !== null && value !== undefined) return JSON.stringify(value);
    if (!this.isBatched) return '';
    const { parent } = this.#adapter;
    throw failed(
      'UPSTREAM_BAD_RESPONSE',
      `The recruiting service returned this ${parent} without an id, so its list cannot be requested.`,
    );
  }

  /** Puts the list into the fields that lead to it, for a number of parents. */
  wrap(list: FieldNode, parents: number) {
    const { reach } = this.#adapter;
    if (reach.kind === 'id') {
      const { result } = this.#steps[0]!;
      const each = Array.from({ length: parents }, (_, at) => at);
      const fields = each.map((at) =>
        fieldNode(reach.field, {
          alias: parentKey(at),
          args: [argumentNode(reach.argument.name, variableFor(at))],
          selections: result.select([list]),
        }),
      );
      const variables = each.map((at) =>
        variableDefinitionNode(variableFor(at), reach.argument.type),
      );
      return { fields, variables };
    }
    const [field] = this.#steps.reduceRight<readonly FieldNode[]>(
      (inner, step) => [fieldNode(step.field, { selections: step.result.select(inner) })],
      [list],
    );
    return { fields: [field!], variables: [] as VariableDefinitionNode[] };
  }

  /** The values of the variables for these parents. */
  values(ids: readonly string[]): JsonObject {
    if (!this.isBatched) return {};
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
    const first = this.#steps[0]!;
    let placed = rootValue(answer, this.isBatched ? parentKey(at) : first.field);
    for (const [index, { field, result }] of this.#steps.entries()) {
      if (index > 0) placed = valueBelow(placed, field);
      const read = result.read(placed.value);
      if (read.kind === 'missing' || (read.kind === 'failure' && read.isMissing))
        throw gone(parent);
      if (read.kind === 'failure')
        return { value: null, errors: [{ error: read.error, path: [] }] };
    }
    const { value, errors } = placed;
    if (!isJsonObject(value) && errors.length === 0) throw gone(parent);
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
    'UPSTREAM_BAD_RESPONSE',
    `The recruiting service no longer has this ${parent}, so its list cannot be read. Request its parent again.`,
  );
}

function failed(code: ErrorCode, message: string): PageFailedError {
  return new PageFailedError(message, { cause: codedError(code, message) });
}
