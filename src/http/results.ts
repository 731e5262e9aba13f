import type { ExecutionResult, GraphQLError } from 'graphql';
import type { Exchange } from './exchange.ts';
import { accepted, JSON_TYPE, type Reply } from './reply.ts';

/**
 * Makes the reply of a result whose errors are masked. As in Yoga, `extensions.http` of the result and of its errors
 * decides about its status and headers, and is not written.
 */
export function replyOf(result: ExecutionResult, exchange: Pick<Exchange, 'header'>): Reply {
  const { data, errors = [], extensions, ...others } = result;
  const { json } = accepted(exchange.header('accept'));
  const rest = {
    ...(errors.length > 0 && { errors: errors.map((error) => shownError(error)) }),
    ...shownExtensions(extensions),
    ...others,
  };
  const isLong = Object.values(data ?? {}).some(isLongList);
  return {
    status: statusOf(result, json === JSON_TYPE),
    headers: { ...headersOf(result), 'content-type': json },
    // A plugin may read it before it is sent.
    body: isLong
      ? { [Symbol.asyncIterator]: () => inParts(data!, rest) }
      : JSON.stringify({ data, ...rest }),
  };
}

/** An error as its caller sees it. */
export function shownError(error: GraphQLError, path = error.path) {
  const { extensions, ...shown } = error.toJSON();
  return { ...shown, ...(path && { path }), ...shownExtensions(extensions) };
}

function shownExtensions(written: ExecutionResult['extensions']) {
  const { http: _, ...extensions } = written ?? {};
  return Object.keys(extensions).length > 0 ? { extensions } : undefined;
}

/** The elements that are written in one turn: some milliseconds of work. Written at once, results blocked for 0.5 s. */
const ELEMENTS_IN_A_TURN = 1_000;

function isLongList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length > ELEMENTS_IN_A_TURN;
}

/** Writes long lists at the root in several turns of the event loop, so that others get theirs. */
async function* inParts(data: object, rest: object): AsyncGenerator<string, void, undefined> {
  let text = '{"data":{';
  let isFirst = true;
  for (const [key, value] of Object.entries(data) as [string, unknown][]) {
    const written = isLongList(value) ? '[' : (JSON.stringify(value) as string | undefined);
    // A field that a plugin has made undefined is left out, as JSON does.
    if (written === undefined) continue;
    text += `${isFirst ? '' : ','}${JSON.stringify(key)}:${written}`;
    isFirst = false;
    if (!isLongList(value)) continue;
    for (let from = 0; from < value.length; from += ELEMENTS_IN_A_TURN) {
      const elements = JSON.stringify(value.slice(from, from + ELEMENTS_IN_A_TURN)).slice(1, -1);
      yield `${text}${from > 0 ? ',' : ''}${elements}`;
      text = '';
    }
    text = ']';
  }
  const after = JSON.stringify(rest).slice(1, -1);
  yield `${text}}${after && `,${after}`}}`;
}

interface RequestedHttp {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the status is the one of GraphQL over HTTP for `application/graphql-response+json` only. */
  readonly spec?: boolean;
  /** Whether it is the status for all callers. Plugins of Yoga set `spec` on all that is refused while it is parsed. */
  readonly isForAll?: boolean;
}

function requestedBy({ extensions }: Pick<ExecutionResult, 'extensions'>): RequestedHttp {
  return (extensions?.['http'] as RequestedHttp | undefined) ?? {};
}

/** The highest status. @param isJson whether the response is `application/json`: there, errors with `spec` have none */
function statusOf(result: ExecutionResult, isJson: boolean): number {
  const ofErrors = (result.errors ?? [])
    .map(requestedBy)
    .filter(({ spec, isForAll }) => !(isJson && spec) || isForAll);
  const statuses = [requestedBy(result), ...ofErrors].flatMap(({ status = [] }) => status);
  return statuses.length > 0 ? Math.max(...statuses) : 200;
}

/** In lower case, so that a header of a plugin does not stand beside the same one of the gateway. */
function headersOf(result: ExecutionResult): Record<string, string> {
  const all = [result, ...(result.errors ?? [])].flatMap((of) =>
    Object.entries(requestedBy(of).headers ?? {}),
  );
  return Object.fromEntries(all.map(([name, value]) => [name.toLowerCase(), value]));
}
