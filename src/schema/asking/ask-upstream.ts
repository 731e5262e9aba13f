import { OperationTypeNode, type DocumentNode, type ExecutionResult } from 'graphql';
import { printDocument } from '../../print-document.ts';
import type { AskingContext } from './asking-context.ts';
import { parentsTakenAlong } from './ride-names.ts';
import { stepsToScalar } from './scalar-paths.ts';
import type { UpstreamLink, UpstreamQuestion, WantedRides } from './upstream-link.ts';
import type { UpstreamError, UpstreamValue } from './upstream-value.ts';
import { writeRequest, type WrittenRequest } from './write-request.ts';

type Variables = Readonly<Record<string, unknown>>;

export type AskUpstream = (variables: Variables, context: AskingContext) => Promise<UpstreamValue>;

/**
 * Makes the request for one root field. The caller's selections, fragments and variables are sent as they
 * stand, with only type names put back, `__typename` added where a type is abstract, and what is derived
 * of nested lists written as the lists themselves.
 *
 * The library's own delegation is not used for this: it drops selections that hold nothing but
 * `__typename`, renames what it takes for overlapping aliases, and loses errors that have no null to stand at.
 */
export function questionFor(link: UpstreamLink, question: UpstreamQuestion): AskUpstream {
  const { field, operation } = question;
  const ask = asking(link, operation, (rides) => writeRequest(link, [field], question, rides));
  return async (variables, context) => valueOf(await ask(variables, context), field.name.value);
}

/** The same for two questions that ask the upstream for the same, however their operations differ. */
export function nameOf(link: UpstreamLink, question: UpstreamQuestion): string {
  const { document, used } = writeRequest(link, [question.field], question, 'all');
  const variables = Object.entries(question.variables).filter(([name]) => used.has(name));
  return JSON.stringify([printDocument(document), variables]);
}

/** What was answered to a request. */
export interface UpstreamResult {
  /** Undefined: the upstream did not even begin. */
  readonly data: Readonly<Record<string, unknown>> | null | undefined;
  /** Their paths begin at the root. */
  readonly errors: readonly UpstreamError[];
}

/** Sends what is written; again without the pages that take more with them than themselves. */
export function asking(
  link: UpstreamLink,
  operation: OperationTypeNode,
  write: (rides: WantedRides) => WrittenRequest,
): (variables: Variables, context: AskingContext) => Promise<UpstreamResult> {
  const isQuery = operation === OperationTypeNode.QUERY;
  // A mutation cannot be asked again without what failed of it.
  const request = write(isQuery ? 'all' : 'safe');
  return async (given, context) => {
    const send = async ({ document, served, used }: WrittenRequest) => {
      const variables = Object.fromEntries(
        Object.entries(given).filter(([name]) => used.has(name)),
      );
      if (!isQuery) context.pages?.pay(link.price(document)(variables));
      const result = isQuery
        ? await context.requests.load({ document, variables })
        : await link.execute({ document, variables, operationType: operation, context });
      return resultOf(result, served, link);
    };
    let result = await send(request);
    let taken = parentsTakenAlong(result);
    if (isQuery && taken.size > 0) {
      result = await send(write(taken));
      taken = parentsTakenAlong(result);
    }
    // The first failures may have hidden others.
    if (isQuery && taken.size > 0) result = await send(write('safe'));
    return result;
  };
}

function resultOf(
  { data, errors = [] }: ExecutionResult,
  served: DocumentNode,
  { schema }: UpstreamLink,
): UpstreamResult {
  return {
    data,
    errors: errors.map(({ message, path = [], extensions }): UpstreamError => {
      const steps = stepsToScalar(path, served, schema);
      const inside = steps < path.length && { inside: path.slice(steps) };
      return { message, path: path.slice(0, steps), ...inside, extensions };
    }),
  };
}

/** What was answered for one root field, by its name in the answer. */
function valueOf({ data, errors }: UpstreamResult, key: string): UpstreamValue {
  return {
    value: data?.[key] ?? null,
    errors: errors.map((error) => {
      const { path, message, extensions } = error;
      // An error that was put at another field than the one we asked for belongs to this one all the same.
      return path[0] === key
        ? { ...error, path: path.slice(1) }
        : { path: [], message, extensions };
    }),
  };
}
