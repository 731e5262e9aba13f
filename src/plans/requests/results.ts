import {
  getNullableType,
  isEnumType,
  isLeafType,
  isRequiredArgument,
  type GraphQLObjectType,
  type SelectionNode,
} from 'graphql';
import { ADDED_KEY_PREFIX, type UpstreamError } from '../../answers/answer-errors.ts';
import type { ServiceValue } from '../../answers/envelope.ts';
import { TYPE_KEY, type Shape, type ShapeScope } from '../../answers/shape.ts';
import type { ErrorCode } from '../../errors.ts';
import type { Json } from '../../json.ts';
import type { Result } from '../../schema/derived.ts';
import { fieldNode, fragmentNode, orTypename } from './request-text.ts';

/** How the value of a field of the service is selected and read, whether it is a result (see `Result`) or not. */
export interface ResultReading {
  /** @param selections of a success */
  select(selections: readonly SelectionNode[]): readonly SelectionNode[];
  /** Returns the shape of a success. Errors and other types do not match it. */
  shape(of: Shape): Shape;
  read(value: ServiceValue): ReadResult;
}

/** What the service returned: the page or the record, which may be null; an error; or a type that stands for null. */
type ReadResult =
  | { readonly kind: 'success'; readonly answered: ServiceValue }
  | {
      readonly kind: 'failure';
      /** Whether it means that there is no such record. */
      readonly isMissing: boolean;
      readonly errors: readonly UpstreamError[];
    }
  | { readonly kind: 'other' };

export interface ResultTelemetry {
  /**
   * Called for each error that the service returned as data, in place of a record or a page.
   *
   * @param type the upstream's name @param reason the value of its first enum that has one; empty without
   */
  resultFailed(type: string, reason: string): void;
}

export function resultReading(
  result: Result | undefined,
  { upstreamType }: Pick<ShapeScope, 'upstreamType'>,
  telemetry: ResultTelemetry,
): ResultReading {
  if (!result) return PLAIN;
  const successName = upstreamType(result.success.name);
  const otherNames = new Set(result.others.map(({ name }) => upstreamType(name)));
  const failures = new Map(
    result.failures.map((type, at) => [
      upstreamType(type.name),
      failureReading(type, aliasPrefix(at)),
    ]),
  );
  return {
    select: (selections) => selectResult(result, selections),
    shape: (of) => ({
      kind: 'abstract',
      nullable: of.nullable,
      type: result.type.name,
      of: (name) => (name === successName && of.kind === 'object' ? of : undefined),
      common: () => (of.kind === 'object' ? of.fields : []),
    }),
    read: (answered) => {
      const { value, errors } = answered;
      const name = value?.get(TYPE_KEY)?.string ?? successName;
      if (otherNames.has(name)) return { kind: 'other' };
      const failure = failures.get(name);
      // The general reading reports a type that the schema snapshot does not have.
      if (!failure) return { kind: 'success', answered };
      const { isMissing, error, reason } = failure(value!);
      telemetry.resultFailed(name, reason);
      return { kind: 'failure', isMissing, errors: [error, ...errors] };
    },
  };
}

/**
 * Selects of a result its success, and all scalars and enums of its errors, each under an alias of the gateway, because
 * fields of one name may have several types.
 */
export function selectResult(
  result: Result | undefined,
  selections: readonly SelectionNode[],
): readonly SelectionNode[] {
  if (!result) return selections;
  const failures = result.failures.map((type, at) => {
    const prefix = aliasPrefix(at);
    return fragmentNode(
      type.name,
      orTypename(plainFields(type).map(({ name }) => fieldNode(name, { alias: prefix + name }))),
    );
  });
  return [fragmentNode(result.success.name, selections), ...failures];
}

/** @param at the index of the error among those of the result */
function aliasPrefix(at: number): string {
  return `${ADDED_KEY_PREFIX}Error${at}_`;
}

function plainFields(type: GraphQLObjectType) {
  return Object.values(type.getFields())
    .filter((field) => isLeafType(getNullableType(field.type)))
    .filter((field) => !field.args.some(isRequiredArgument));
}

const PLAIN: ResultReading = {
  select: (selections) => selections,
  shape: (of) => of,
  read: (answered) => ({ kind: 'success', answered }),
};

/** Makes a function that reads errors of a type. @param prefix of the aliases of its fields */
function failureReading(type: GraphQLObjectType, prefix: string) {
  const fields = plainFields(type);
  const enums = new Map(
    fields.flatMap(({ name, type: of }) => {
      const named = getNullableType(of);
      return isEnumType(named)
        ? [[name, new Set(named.getValues().map((value) => value.name))]]
        : [];
    }),
  );
  return (value: Json) => {
    const members = value.members(new Set(fields.map(({ name }) => prefix + name)));
    const values = new Map(
      fields.flatMap(({ name }) => {
        const member = members.get(prefix + name);
        return member ? [[name, member] as const] : [];
      }),
    );
    const texts = Array.from(values).flatMap(([name, { string }]) =>
      string === undefined ? [] : [{ name, text: string, isEnum: enums.has(name) }],
    );
    const words = wordsOf(texts);
    const codes = [
      ...texts.filter(isCode).map(({ text }) => text),
      ...Array.from(values).flatMap(([name, { kind, raw }]) =>
        kind === 'number' && NUMBERED.test(name) ? [raw] : [],
      ),
    ];
    const meaning =
      first(codes, meaningOf) ??
      meaningOf(type.name) ??
      (codes.length === 0 && words && MEANS_MISSING.test(words.text) ? 'missing' : undefined);
    const error = errorOf({
      code: CODES[meaning ?? 'other'],
      message: words?.text ?? `The recruiting service returned a ${type.name}.`,
      type: type.name,
      values,
    });
    const [reason] = texts.filter(({ name, text }) => enums.get(name)?.has(text));
    return { isMissing: meaning === 'missing', error, reason: reason?.text ?? '' };
  };
}

interface Text {
  readonly name: string;
  readonly text: string;
  readonly isEnum: boolean;
}

/** The words in which an error explains itself. */
function wordsOf(texts: readonly Text[]): Text | undefined {
  return (
    first(WORDS, (pattern) => texts.find(({ name, isEnum }) => !isEnum && pattern.test(name))) ??
    texts.find((text) => text.text !== '' && !isCode(text))
  );
}

const WORDS = [/^message$/i, /message$/i, /^(detail|description|reason|title|text|error)s?$/i];

/** Whether a text is for programs, like `NOT_FOUND`. */
function isCode({ name, text, isEnum }: Text): boolean {
  return (
    isEnum || (/code|error|kind|message|reason|status|type/i.test(name) && /^[\w.:/-]+$/.test(text))
  );
}

/** Fields whose numbers may be those of HTTP. */
const NUMBERED = /code|status/i;

type Meaning = 'missing' | 'forbidden' | 'limited';

/** However it is spelled: `NOT_FOUND`, `person.notFound`, `PersonNotFoundError`, 404. */
function meaningOf(code: string): Meaning | undefined {
  const spelled = code.replaceAll(/[^a-z\d]/gi, '').toLowerCase();
  return first(MEANINGS, ([meaning, pattern]) => (pattern.test(spelled) ? meaning : undefined));
}

const MEANINGS: readonly (readonly [Meaning, RegExp])[] = [
  [
    'missing',
    /notfound|nosuch|do(es)?n(o)?texist|nonexist|unknownid|^(missing|gone|deleted|404|410)$/,
  ],
  [
    'forbidden',
    /forbidden|denied|unauthori[sz]ed|unauthenticated|not(allowed|permitted|authori[sz]ed)|^(no|missing|insufficient)(access|permissions?|rights?)|^(401|403)$/,
  ],
  ['limited', /ratelimit|toomanyrequests|throttl|quota|^429$/],
];

const MEANS_MISSING =
  /\b(not|n't) (be )?found\b|\b(does not|doesn't|do not|don't) exist\b|\bno such\b/i;

const CODES: Readonly<Record<Meaning | 'other', ErrorCode>> = {
  missing: 'UPSTREAM_BAD_RESPONSE',
  forbidden: 'FORBIDDEN',
  limited: 'UPSTREAM_RATE_LIMITED',
  other: 'UPSTREAM_BAD_RESPONSE',
};

/** Repeats all values of the error as the service wrote them. */
function errorOf({
  code,
  message,
  type,
  values,
}: {
  readonly code: ErrorCode;
  readonly message: string;
  readonly type: string;
  readonly values: ReadonlyMap<string, Json>;
}): UpstreamError {
  const fields = Array.from(values, ([name, { raw }]) => `,"${name}":${raw}`).join('');
  const result = `{"__typename":"${type}"${fields}}`;
  return {
    message,
    path: [],
    members: `"extensions":{"code":"${code}","result":${result}}`,
    code,
    result,
    order: Infinity,
  };
}

function first<T, U>(all: readonly T[], find: (element: T) => U | undefined): U | undefined {
  for (const element of all) {
    const result = find(element);
    if (result !== undefined) return result;
  }
  return undefined;
}
