import type { Path } from '../answers/errors.ts';
import { INLINED_PAGE, type UpstreamError } from '../answers/errors.ts';
import type { Json } from '../json.ts';
import type { Asking, UpstreamRequest } from './call.ts';
import type { WantedPages } from './upstream-request.ts';

interface Answer {
  /** The keys of inlined pages whose failure also nulled their parent. */
  readonly takenAlong: ReadonlySet<string>;
}

export const NOBODY: ReadonlySet<string> = new Set();

/**
 * Asks again without the inlined pages whose failure also nulled their parent, as it does where the list's own type
 * may not be null: what is derived of it may be, so its parent must not go with it.
 */
export async function askSparingParents<T extends Answer>(
  asking: Pick<Asking, 'ask'>,
  write: (wanted: WantedPages) => UpstreamRequest<T>,
): Promise<T> {
  let answer = await asking.ask(write('all'));
  if (answer.takenAlong.size > 0) answer = await asking.ask(write(answer.takenAlong));
  // The first failures may have hidden others.
  if (answer.takenAlong.size > 0) answer = await asking.ask(write('safe'));
  return answer;
}

export function parentsTakenAlong(
  data: Json | undefined,
  errors: readonly UpstreamError[],
): ReadonlySet<string> {
  const taken = errors.flatMap(({ path = [] }) => {
    const last = path.findLastIndex((step) => INLINED_PAGE.test(String(step)));
    if (last < 0) return [];
    const parent = valueAt(data, path.slice(0, last));
    return !parent || parent.isNull ? [String(path[last])] : [];
  });
  return taken.length > 0 ? new Set(taken) : NOBODY;
}

function valueAt(data: Json | undefined, path: Path): Json | undefined {
  let value = data;
  for (const step of path)
    value = typeof step === 'number' ? value?.values[step] : value?.get(step);
  return value;
}
