import * as v from 'valibot';
import { OperatorMistake } from '../../errors.ts';

/*
 * adapters.json: the operator overrides the result of the detection, and restricts who may read what.
 */

const SCOPE = v.pipe(v.string(), v.nonEmpty());

const FILE = v.strictObject({
  /** By coordinate, for example `Query.persons`. Everything except the scope is for paged fields. */
  fields: v.optional(
    v.record(
      v.string(),
      v.strictObject({
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
      v.strictObject({
        /** The root field that returns a record by its id; null: no field does. */
        byId: v.nullish(v.string()),
        scope: v.optional(SCOPE),
      }),
    ),
    {},
  ),
});

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
