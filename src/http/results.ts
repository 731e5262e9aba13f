import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ExecutionResult, GraphQLError } from 'graphql';
import { resultOf } from '../engine/answer.ts';
import { parseExactly } from '../engine/json.ts';
import type { Payload } from '../engine/stream.ts';
import type { Piece } from './reply.ts';

/*
 * Results as plugins see them: plain values, which they may read and change at will, and errors whose `originalError` is
 * what was thrown. Errors are masked when they are written, those of plugins too.
 */

/** The values of a payload of an answer in parts. */
export interface PayloadResult extends ExecutionResult {
  readonly incremental?: readonly Readonly<Record<string, unknown>>[];
  readonly hasNext?: boolean;
}

export type Results = ExecutionResult | AsyncIterable<PayloadResult>;

export function isParts(results: Results): results is AsyncIterable<PayloadResult> {
  return Symbol.asyncIterator in results;
}

/** Makes the values of a payload. */
export async function payloadResult(payload: Payload): Promise<PayloadResult> {
  const { first, incremental = [], hasNext } = payload;
  if (first) return { ...(await resultOf(first)), ...(hasNext && { hasNext }) };
  const entries = await Promise.all(
    incremental.map(async ({ path, label, items, errors, extensions }) => ({
      items: items ? parseExactly(`[${items.join('')}]`) : null,
      path,
      ...(label !== undefined && { label }),
      ...(await resultOf({ data: undefined, errors, extensions })),
    })),
  );
  return { ...(entries.length > 0 && { incremental: entries }), hasNext };
}

/** Replaces an unexpected error by one for callers. */
export type MaskAny = (error: unknown) => GraphQLError;

/** Writes any result as JSON: a long list at the root in several turns of the event loop, so that others get theirs. */
export async function writeResult(
  { data, errors, extensions, incremental, ...others }: PayloadResult,
  mask: MaskAny,
): Promise<Piece[]> {
  const rest = {
    ...shownErrors(errors, mask),
    ...(extensions && shownExtensions(extensions)),
    incremental: incremental?.map((entry) => ({
      ...entry,
      ...shownErrors(entry['errors'] as PayloadResult['errors'], mask),
    })),
    ...others,
  };
  if (!data || !Object.values(data).some(isLong)) return [JSON.stringify({ data, ...rest })];
  const pieces: Piece[] = [];
  for (const [key, value] of Object.entries(data)) {
    // A field that a plugin has made undefined is left out, as JSON does.
    const written = isLong(value) ? await writeList(value) : [JSON.stringify(value)];
    if (written[0] !== undefined) pieces.push(',', `${JSON.stringify(key)}:`, ...written);
  }
  const after = JSON.stringify(rest).slice(1, -1);
  return ['{"data":{', ...pieces.slice(1), '}', after && `,${after}`, '}'];
}

/** The elements that are written in one turn: some milliseconds of work. Written at once, results blocked for 0.5 s. */
const ELEMENTS_IN_A_TURN = 1_000;

function isLong(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length > ELEMENTS_IN_A_TURN;
}

async function writeList(list: readonly unknown[]): Promise<Piece[]> {
  const pieces: Piece[] = [];
  for (let from = 0; from < list.length; from += ELEMENTS_IN_A_TURN) {
    const elements = list.slice(from, from + ELEMENTS_IN_A_TURN);
    pieces.push(from === 0 ? '[' : ',', JSON.stringify(elements).slice(1, -1));
    await nextTurn();
  }
  return [...pieces, ']'];
}

function shownErrors(errors: PayloadResult['errors'], mask: MaskAny) {
  if (!errors?.length) return undefined;
  return { errors: errors.map((error) => shownError(mask(error))) };
}

/** An error as it is written. */
export function shownError(error: GraphQLError) {
  const { extensions, ...shown } = error.toJSON();
  return { ...shown, ...(extensions && shownExtensions(extensions)) };
}

/** `http` of plugins and of the gateway only sets the status and headers of the response. */
export function shownExtensions(written: Readonly<Record<string, unknown>>) {
  const { http: _, ...extensions } = written;
  return Object.keys(extensions).length > 0 ? { extensions } : undefined;
}

/**
 * Returns the status and headers that `extensions.http` of a result and its errors asks for, as Yoga does.
 *
 * @param isJson whether the response is `application/json`: there, errors with `spec` do not change the status
 */
export function httpOf({ errors = [], extensions }: ExecutionResult, isJson: boolean) {
  const headers: Record<string, string> = {};
  let status: number | undefined;
  const add = (of: Readonly<Record<string, unknown>> | undefined, mayDiffer: boolean) => {
    const http = of?.['http'] as RequestedHttp | undefined;
    // In lower case, so that one of a plugin does not stand beside the same one of the gateway.
    for (const [name, value] of Object.entries(http?.headers ?? {})) {
      headers[name.toLowerCase()] = value;
    }
    if (http?.status === undefined || (mayDiffer && http.spec && !http.isForAll)) return;
    status = Math.max(http.status, status ?? 0);
  };
  add(extensions, false);
  for (const error of errors) add(error.extensions, isJson);
  return { status: status ?? 200, headers };
}

interface RequestedHttp {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the status is the one of GraphQL over HTTP for `application/graphql-response+json` only. */
  readonly spec?: boolean;
  /** Whether it is the status for all callers. Plugins of Yoga set `spec` on all that is refused while it is parsed. */
  readonly isForAll?: boolean;
}
