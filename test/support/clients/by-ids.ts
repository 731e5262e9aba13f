import type { Payload, ReceivedError } from './multipart.ts';

/** One part of an answer in the format of graphql-js 17, which clients call v0.2. */
interface IdPayload {
  data?: Record<string, unknown> | null;
  errors?: ReceivedError[];
  pending?: { id: string; path: (string | number)[]; label?: string }[];
  incremental?: {
    id: string;
    items?: unknown[];
    data?: Record<string, unknown>;
    subPath?: (string | number)[];
    errors?: ReceivedError[];
  }[];
  completed?: { id: string; errors?: ReceivedError[] }[];
  hasNext?: boolean;
}

/**
 * Reads this format strictly, and returns its parts in the older one: an id that was not announced, or is used after
 * its part is complete, throws; so does an answer that ends before all parts are complete.
 */
export function byPath(received: readonly object[]): Payload[] {
  const payloads = received as readonly IdPayload[];
  const open = new Map<string, NonNullable<IdPayload['pending']>[number] & { sent: number }>();
  const data: Record<string, unknown> = {};
  const announced = new Set<string>();
  const openPart = (id: string) => {
    const part = open.get(id);
    if (!part) throw new Error(`The part ${id} is not pending.`);
    return part;
  };
  const at = (path: readonly (string | number)[]) =>
    path.reduce<unknown>((value, key) => {
      if (typeof value !== 'object' || value === null || !(key in value)) {
        throw new Error(`There is no ${path.join('.')} yet.`);
      }
      return (value as Record<string | number, unknown>)[key];
    }, data);
  const read = payloads.map((payload, index): Payload => {
    if (index === 0 && payload.data) Object.assign(data, structuredClone(payload.data));
    const increments: NonNullable<Payload['incremental']> = [];
    const later: (() => void)[] = [];
    for (const part of payload.pending ?? []) {
      if (announced.has(part.id)) throw new Error(`The id ${part.id} is used twice.`);
      announced.add(part.id);
      open.set(part.id, { ...part, sent: 0 });
      // The path of a part is in the payload that announces it, or in an earlier one.
      later.push(() => {
        const place = at(part.path);
        if (Array.isArray(place)) openPart(part.id).sent = place.length;
      });
    }
    if (index === 0) for (const check of later.splice(0)) check();
    for (const { id, items, subPath = [], ...rest } of payload.incremental ?? []) {
      const part = openPart(id);
      const label = part.label === undefined ? {} : { label: part.label };
      if (items) {
        (at(part.path) as unknown[]).push(...structuredClone(items));
        increments.push({ ...rest, ...label, items, path: [...part.path, part.sent] });
        part.sent += items.length;
      } else {
        const path = [...part.path, ...subPath];
        merge(at(path) as object, structuredClone(rest.data!));
        increments.push({ ...rest, ...label, path });
      }
    }
    for (const check of later) check();
    for (const { id, errors } of payload.completed ?? []) {
      const { path, label, sent } = openPart(id);
      open.delete(id);
      if (!errors) continue;
      const isList = Array.isArray(at(path));
      increments.push({
        ...(isList ? { items: null, path: [...path, sent] } : { data: null, path }),
        ...(label !== undefined && { label }),
        errors,
      });
    }
    const isLast = index === payloads.length - 1;
    if (isLast && open.size > 0)
      throw new Error(`Never completed: ${[...open.keys()].join(', ')}.`);
    const { data: first, errors, hasNext } = payload;
    return {
      ...(first !== undefined && { data: first }),
      ...(errors && { errors }),
      ...(increments.length > 0 && { incremental: increments }),
      ...(hasNext !== undefined && { hasNext }),
    };
  });
  // In the older format, the end of a list alone needs no payload.
  return read.filter((payload) => Object.keys(payload).length > 1 || payload.hasNext !== true);
}

/** Adds the fields of a part. Several parts may contain the same field, with the same objects and lists. */
export function merge(held: object, more: object): void {
  for (const [key, value] of Object.entries(more) as [string, unknown][]) {
    const previous = (held as Record<string, unknown>)[key];
    const isBoth = [previous, value].every((side) => typeof side === 'object' && side !== null);
    if (isBoth) merge(previous as object, value as object);
    else (held as Record<string, unknown>)[key] = value;
  }
}
