import { z } from 'zod';
import { OperatorMistake } from '../../errors.ts';

/*
 * adapters.json: the operator overrides the result of the detection, and restricts who may read what.
 */

/** The scopes that every gateway has: docs/callers.md. */
const OPERATION_SCOPES: ReadonlySet<string> = new Set(['read', 'drain', 'write', 'router']);

/** As OAuth writes it (RFC 6749, 3.3), without what separates the scopes of an API key. */
const SCOPE = z
  .string()
  .regex(/^[!#-*\-.-[\]-~]+$/, 'must be a scope: printable ASCII without space, comma, +, " and \\')
  .refine((scope) => !OPERATION_SCOPES.has(scope), {
    message:
      'must not be read, drain, write or router, which say what operations a caller may send',
  });

const FILE = z.strictObject({
  /** By coordinate, for example `Query.persons`. Everything except the scope is for paged fields. */
  fields: z
    .record(
      z.string(),
      z.strictObject({
        skip: z.boolean().optional(),
        page: z.int().positive().optional(),
        /** The field that identifies a record, where none is called `id`. */
        identity: z.string().optional(),
        /** The page's field with the number of records of all pages. */
        count: z.string().optional(),
        /** The argument with the cursor, where several may be the one. */
        after: z.string().optional(),
        scope: SCOPE.optional(),
      }),
    )
    .default({}),
  types: z
    .record(
      z.string(),
      z.strictObject({
        /** The root field that returns a record by its id; null: no field does. */
        byId: z.string().nullable().optional(),
        scope: SCOPE.optional(),
      }),
    )
    .default({}),
});

/** What adapters.json says. */
export type Overrides = Readonly<z.infer<typeof FILE>>;
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
  const { data, error } = FILE.safeParse(json ?? {});
  if (data) return data;
  throw new OperatorMistake(`${SUBJECT} is not valid:\n${z.prettifyError(error)}`);
}

/** The scopes that adapters.json gives to types and fields, whatever the schema. */
export function scopesIn(json: unknown): readonly string[] {
  return [...new Set(scopesByPlace(readOverrides(json)).values())];
}

/** The scopes by the name of a type, or the coordinate of a field. */
export function scopesByPlace({ fields, types }: Overrides): ReadonlyMap<string, string> {
  const entries = [...Object.entries(fields), ...Object.entries(types)];
  return new Map(entries.flatMap(([place, { scope }]) => (scope ? [[place, scope] as const] : [])));
}
