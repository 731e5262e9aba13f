import type { Json } from '../json.ts';
import { STEP, type Pausable } from '../pausable.ts';
import { INLINED_PAGE, type Path, type UpstreamError } from './answer-errors.ts';

/** Returns the keys of the inlined pages whose failure also nulled their parent. */
export function* nullingPagesOf(
  data: Json | undefined,
  errors: readonly UpstreamError[],
): Pausable<ReadonlySet<string>> {
  const failed = errors.flatMap(({ path = [] }) => {
    const last = path.findLastIndex((step) => INLINED_PAGE.test(String(step)));
    return last < 0 ? [] : [{ parent: path.slice(0, last), key: String(path[last]) }];
  });
  return failed.length > 0 ? new Set(yield* withoutParent(data, failed, 0)) : NO_PAGES;
}

export const NO_PAGES: ReadonlySet<string> = new Set();

interface FailedPage {
  readonly parent: Path;
  readonly key: string;
}

/** The keys of the pages whose parent is null. Each list on the way is passed once, however many pages failed in it. */
function* withoutParent(
  value: Json | undefined,
  failed: readonly FailedPage[],
  depth: number,
): Pausable<string[]> {
  if (!value || value.isNull) return failed.map(({ key }) => key);
  const byStep = Map.groupBy(failed, ({ parent }) => parent[depth]);
  byStep.delete(undefined);
  const values = yield* valuesAt(value, [...byStep.keys()] as (string | number)[]);
  const keys: string[] = [];
  for (const [step, pages] of byStep) {
    keys.push(...(yield* withoutParent(values.get(step!), pages, depth + 1)));
  }
  return keys;
}

/** Finds members by their keys, or elements by their indexes. */
function* valuesAt(
  value: Json,
  steps: readonly (string | number)[],
): Pausable<ReadonlyMap<string | number, Json>> {
  if (value.kind !== 'list') return value.members(new Set(steps.map(String)));
  const missing = new Set(steps);
  const values = new Map<string | number, Json>();
  let index = 0;
  let progress = 0;
  for (const element of value.elements()) {
    if (missing.delete(index)) values.set(index, element);
    if (missing.size === 0) break;
    index += 1;
    progress += element.length;
    if (progress <= STEP) continue;
    progress = 0;
    yield;
  }
  return values;
}
