import * as v from 'valibot';
import { OperatorMistake } from '../../errors.ts';

/*
 * adapters.json: the operator overrides the result of the detection, and restricts who may read what.
 */

/** The scopes that every gateway has: docs/callers.md. */
const OPERATION_SCOPES: ReadonlySet<string> = new Set(['read', 'drain', 'write', 'router']);

/** As OAuth writes it (RFC 6749, 3.3), without what separates the scopes of an API key. */
const SCOPE = v.pipe(
  v.string(),
  v.regex(
    /^[!#-*\-.-[\]-~]+$/,
    'must be a scope: printable ASCII without space, comma, +, " and \\',
  ),
  v.check(
    (scope) => !OPERATION_SCOPES.has(scope),
    'must not be read, drain, write or router, which say what operations a caller may send',
  ),
);

const FILE = known({
  /** By coordinate, for example `Query.persons`. Everything except the scope is for paged fields. */
  fields: v.optional(
    v.record(
      v.string(),
      known({
        skip: v.optional(v.boolean()),
        page: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(1))),
        /** The field that identifies a record, where none is called `id`. */
        identity: v.optional(v.string()),
        /** The page's field with the number of records of all pages. */
        count: v.optional(v.string()),
        /** The argument with the cursor, where several may be the one. */
        after: v.optional(v.string()),
        scope: v.optional(SCOPE),
      }),
    ),
    {},
  ),
  types: v.optional(
    v.record(
      v.string(),
      known({
        /** The root field that returns a record by its id; null: no field does. */
        byId: v.nullish(v.string()),
        scope: v.optional(SCOPE),
      }),
    ),
    {},
  ),
});

/** An object that has only these keys. */
function known<const Entries extends v.ObjectEntries>(entries: Entries) {
  const object = v.strictObject(entries, ({ expected, message }) =>
    expected === 'never' ? 'Unknown key' : message,
  );
  return v.pipe(
    v.custom((value) => !Array.isArray(value), 'An object is expected'),
    object,
  );
}

/** What adapters.json says. */
export type Overrides = Readonly<v.InferOutput<typeof FILE>>;
export type FieldOverride = Readonly<Overrides['fields'][string]>;

/** For messages. */
export const SUBJECT = 'adapters.json, beside the schema snapshot,';

/**
 * Reads adapters.json, whatever the schema.
 *
 * @param json undefined if the file does not exist
 * @throws OperatorMistake
 */
export function readOverrides(json: unknown): Overrides {
  const { success, output, issues } = v.safeParse(FILE, json ?? {});
  if (success) return output;
  throw new OperatorMistake(`${SUBJECT} is not valid:\n${v.summarize(issues)}`);
}

/** The scopes by the name of a type, or the coordinate of a field. */
export function scopesByPlace({ fields, types }: Overrides): ReadonlyMap<string, string> {
  const entries = [...Object.entries(fields), ...Object.entries(types)];
  return new Map(entries.flatMap(([place, { scope }]) => (scope ? [[place, scope] as const] : [])));
}
