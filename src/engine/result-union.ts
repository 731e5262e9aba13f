import {
  getNullableType,
  isLeafType,
  isRequiredArgument,
  type GraphQLObjectType,
  type SelectionNode,
} from 'graphql';
import { idOf, type Result } from '../schema/derived.ts';
import type { ServiceError } from './answer.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import { fieldNode, fragmentNode, orTypename } from './syntax.ts';

/*
 * A field of the service may return a union or an interface of a page or a record, and of errors:
 * `union Person = PersonItem | PersonNotFound`. What the gateway derives from such a field returns the page or the
 * record itself, and an error as an error, in the words of the service.
 */

const TYPE_KEY = '_rs_type';

/**
 * Selects and reads a value of a field, whether it is a result or not.
 *
 * @param upstreamType returns the service's name of a served type
 */
export function resultUnion(result: Result | undefined, upstreamType: (served: string) => string) {
  const failures = (result?.failures ?? []).map(failureOf);
  const byType = new Map(failures.map((failure) => [upstreamType(failure.type.name), failure]));
  return {
    /** @param selections of a success */
    select: (selections: readonly SelectionNode[]): readonly SelectionNode[] => {
      if (!result) return selections;
      return [
        fieldNode('__typename', { alias: TYPE_KEY }),
        fragmentNode(result.success.name, selections),
        ...failures.map(({ type, fields, prefix }) => {
          const values = fields.map((name) => fieldNode(name, { alias: prefix + name }));
          return fragmentNode(type.name, orTypename(values));
        }),
      ];
    },
    /** Returns the error that a value is, if it is one. Also removes what was selected to find out. */
    failureIn: (value: unknown): ServiceError | undefined => {
      if (!result || !isJsonObject(value)) return undefined;
      const failure = byType.get(String(value[TYPE_KEY]));
      // JSON.stringify leaves it out.
      value[TYPE_KEY] = undefined;
      return failure && readFailure(failure, value);
    },
  };
}

interface Failure {
  readonly type: GraphQLObjectType;
  /** Those that are scalars or enums; of a type with an `id`, which may be another record, only the message. */
  readonly fields: readonly string[];
  /** Of their aliases: fields of one name may have several types. */
  readonly prefix: string;
}

function failureOf(type: GraphQLObjectType, at: number): Failure {
  const hasId = idOf(type) !== undefined;
  const fields = Object.values(type.getFields())
    .filter(({ name }) => !hasId || /message/i.test(name))
    .filter(
      (field) => isLeafType(getNullableType(field.type)) && !field.args.some(isRequiredArgument),
    )
    .map(({ name }) => name);
  return { type, fields, prefix: `_rs_error${at}_` };
}

/** The message is the service's own: the first field that is called so, otherwise the first text. */
function readFailure({ type, fields, prefix }: Failure, value: JsonObject): ServiceError {
  const values = fields.map((name) => [name, value[prefix + name]] as const);
  const texts = values.filter(([, text]) => typeof text === 'string' && text !== '');
  const [, words] = texts.find(([name]) => /message/i.test(name)) ?? texts[0] ?? [];
  return {
    message: typeof words === 'string' ? words : `The recruiting service returned a ${type.name}.`,
    extensions: { result: { __typename: type.name, ...Object.fromEntries(values) } },
  };
}
