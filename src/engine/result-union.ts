import {
  getNullableType,
  isLeafType,
  isRequiredArgument,
  type GraphQLObjectType,
  type SelectionNode,
} from 'graphql';
import type { ErrorCode } from '../errors.ts';
import type { Result } from '../schema/derived.ts';
import type { ServiceError } from './answer.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import { fieldNode, fragmentNode, orTypename } from './syntax.ts';

/*
 * A field of the service may return a union or an interface of a page or a record, and of errors:
 * `union Person = PersonItem | PersonNotFound`. What the gateway derives from such a field returns the page or the
 * record itself, and an error as an error, in the words of the service.
 */

/** What the service returned in such a place. `missing`: there is no such record. */
type ReadResult =
  | { readonly kind: 'success'; readonly value: unknown }
  | { readonly kind: 'failure'; readonly isMissing: boolean; readonly error: ServiceError }
  | { readonly kind: 'missing' };

const TYPE_KEY = '_rs_type';

/** Selects and reads a value of a field, whether it is a result or not. */
export class ResultUnion {
  readonly #result: Result | undefined;
  readonly #others: ReadonlySet<string>;
  /** By the names of their types in the service. */
  readonly #failures: ReadonlyMap<string, Failure>;

  /** @param upstreamType returns the service's name of a served type */
  constructor(result: Result | undefined, upstreamType: (served: string) => string) {
    this.#result = result;
    this.#others = new Set(result?.others.map(({ name }) => upstreamType(name)));
    this.#failures = new Map(
      result?.failures.map((type, at) => [upstreamType(type.name), failureOf(type, at)]),
    );
  }

  /** @param selections of a success */
  select(selections: readonly SelectionNode[]): readonly SelectionNode[] {
    if (!this.#result) return selections;
    return [
      fieldNode('__typename', { alias: TYPE_KEY }),
      fragmentNode(this.#result.success.name, selections),
      ...Array.from(this.#failures.values(), ({ type, fields, prefix }) =>
        fragmentNode(
          type.name,
          orTypename(fields.map((name) => fieldNode(name, { alias: prefix + name }))),
        ),
      ),
    ];
  }

  /** Also removes what was selected to find out. */
  read(value: unknown): ReadResult {
    if (!this.#result || !isJsonObject(value)) return { kind: 'success', value };
    const type = String(value[TYPE_KEY]);
    // JSON.stringify leaves it out.
    value[TYPE_KEY] = undefined;
    if (this.#others.has(type)) return { kind: 'missing' };
    const failure = this.#failures.get(type);
    return failure ? readFailure(failure, value) : { kind: 'success', value };
  }
}

interface Failure {
  readonly type: GraphQLObjectType;
  /** Those that are scalars or enums. */
  readonly fields: readonly string[];
  /** Of their aliases: fields of one name may have several types. */
  readonly prefix: string;
}

function failureOf(type: GraphQLObjectType, at: number): Failure {
  const fields = Object.values(type.getFields())
    .filter(
      (field) => isLeafType(getNullableType(field.type)) && !field.args.some(isRequiredArgument),
    )
    .map(({ name }) => name);
  return { type, fields, prefix: `_rs_error${at}_` };
}

function readFailure({ type, fields, prefix }: Failure, value: JsonObject): ReadResult {
  const values = fields.map((name) => [name, value[prefix + name]] as const);
  const texts = values.filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  const codes = values.filter(([name, code]) => isCode(name, code)).map(([, code]) => String(code));
  const words =
    WORDS.map((pattern) => texts.find(([name]) => pattern.test(name))).find(Boolean) ??
    texts.find(([name, text]) => text !== '' && !isCode(name, text));
  const meaning = [...codes, type.name].map(meaningOf).find(Boolean);
  const says = codes.length === 0 && words && SAYS_MISSING.test(words[1]);
  const [, , code = 'UPSTREAM_BAD_RESPONSE'] = meaning ?? [];
  return {
    kind: 'failure',
    isMissing: meaning ? meaning[0] === 'missing' : says === true,
    error: {
      message: words?.[1] ?? `The recruiting service returned a ${type.name}.`,
      extensions: { code, result: { __typename: type.name, ...Object.fromEntries(values) } },
    },
  };
}

/** The fields in which an error explains itself, the best first. */
const WORDS = [/^message$/i, /message$/i, /^(detail|description|reason|title|text|error)s?$/i];

/** Whether a value is for programs, like `NOT_FOUND` and 404. */
function isCode(name: string, value: unknown): boolean {
  if (typeof value === 'number') return /code|status/i.test(name);
  return (
    typeof value === 'string' &&
    /code|error|kind|reason|status|type/i.test(name) &&
    /^[\w.:/-]+$/.test(value)
  );
}

/** However it is spelled: `NOT_FOUND`, `person.notFound`, `PersonNotFoundError`, 404. */
function meaningOf(code: string): (typeof MEANINGS)[number] | undefined {
  const spelled = code.replaceAll(/[^a-z\d]/gi, '').toLowerCase();
  return MEANINGS.find(([, pattern]) => pattern.test(spelled));
}

const MEANINGS: readonly (readonly [name: string, pattern: RegExp, code: ErrorCode])[] = [
  [
    'missing',
    /notfound|nosuch|do(es)?n(o)?texist|nonexist|unknownid|^(missing|gone|deleted|404|410)$/,
    'UPSTREAM_BAD_RESPONSE',
  ],
  [
    'forbidden',
    /forbidden|denied|unauthori[sz]ed|unauthenticated|not(allowed|permitted|authori[sz]ed)|^(no|missing|insufficient)(access|permissions?|rights?)|^(401|403)$/,
    'FORBIDDEN',
  ],
  ['limited', /ratelimit|toomanyrequests|throttl|quota|^429$/, 'UPSTREAM_RATE_LIMITED'],
];

const SAYS_MISSING =
  /\b(not|n't) (be )?found\b|\b(does not|doesn't|do not|don't) exist\b|\bno such\b/i;
