import { codedError } from '../errors.ts';
import { PageFailedError } from '../paging/page.ts';
import type { Adapter, ByIdField } from '../schema/derived.ts';
import type { Shared } from './shared.ts';
import { ByIds } from './by-ids.ts';
import { isJsonObject } from './json.ts';
import { valueBelow, type PlacedValue, type ServiceAnswer } from './service-answer.ts';

/**
 * How a nested list is requested: from the root, through the field that returns its parent by its id. Several parents
 * share a request.
 */
export class WayToParent extends ByIds {
  readonly #adapter: Adapter;

  constructor(shared: Shared, adapter: Adapter, reach: ByIdField) {
    super(shared, reach);
    this.#adapter = adapter;
  }

  /**
   * Finds the list of a parent in an answer.
   *
   * @param at the index of the parent in the request
   * @throws PageFailedError if there is no such parent any more
   */
  listIn(answer: ServiceAnswer, at: number): PlacedValue {
    const { parent, name } = this.#adapter;
    const { failure, ...placed } = this.read(answer, at);
    if (failure) return { value: null, errors: [{ error: failure, path: [] }] };
    if (isJsonObject(placed.value) || placed.errors.length > 0) return valueBelow(placed, name);
    const message = `The recruiting service no longer has this ${parent}, so its list cannot be read. Request its parent again.`;
    throw new PageFailedError(message, { cause: codedError('UPSTREAM_BAD_RESPONSE', message) });
  }
}
