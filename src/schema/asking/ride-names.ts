import type { ResponsePath } from './response-path.ts';

/*
 * The first page of a nested list rides in the request for its parent, under an alias of our own. It is
 * made of the parent's type and the caller's response key, so that two nodes merge there exactly where
 * they merge for the caller, and never elsewhere.
 */

/** The alias of the page that `key` of a `parent` rides in. */
export function rideAlias(parent: string, key: string): string {
  return `_rsPage${parent.length}_${parent}_${key}`;
}

/** Where the errors of a ridden page are put down, beside it. */
export function errorsBeside(alias: string): string {
  return `_rsErrors${alias.slice('_rsPage'.length)}`;
}

/** The alias of the list of records for one place of a connection, named by its response keys. */
export function placeAlias(edgesKey: string, nodeKey?: string): string {
  return nodeKey === undefined
    ? `_rsItems_${edgesKey}`
    : `_rsItems${edgesKey.length}_${edgesKey}_${nodeKey}`;
}

/** The alias of the id of a parent; as in identity-selection.ts, since their selections may merge. */
export function idAlias(parent: string): string {
  return `_rsId_${parent}`;
}

/** How many steps of the path lead to a ridden page, the alias included; 0 when it meets none. */
export function stepsToRide(path: ResponsePath): number {
  return path.findIndex((step) => RIDE.test(String(step))) + 1;
}

/** The path as the caller knows it, as far as that can be told. */
export function callerPath(path: ResponsePath): ResponsePath {
  const steps = stepsToRide(path);
  if (steps === 0) return path;
  const alias = String(path[steps - 1]);
  const [head, length] = RIDE.exec(alias)!;
  return [...path.slice(0, steps - 1), alias.slice(head.length + Number(length) + 1)];
}

/**
 * The aliases of ridden pages whose errors made more than the page null, as they do where the list's own
 * type may not be null. What is derived of it may be, so its parent must not go with it.
 */
export function parentsTakenAlong({
  data,
  errors,
}: {
  readonly data: unknown;
  readonly errors: readonly { readonly path: ResponsePath }[];
}): ReadonlySet<string> {
  const taken = errors.flatMap(({ path }) => {
    const last = path.findLastIndex((step) => RIDE.test(String(step)));
    let holder: unknown = data;
    for (const step of path.slice(0, Math.max(last, 0))) {
      holder = (holder as Record<string, unknown> | null | undefined)?.[step];
    }
    return last >= 0 && (holder === null || holder === undefined) ? [String(path[last])] : [];
  });
  return new Set(taken);
}

const RIDE = /^_rsPage(\d+)_/;
