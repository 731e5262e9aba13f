import type { GraphQLObjectType, GraphQLSchema } from 'graphql';
import * as v from 'valibot';
import { OperatorMistake, OperatorMistakes } from '../../errors.ts';
import type { Report } from '../derived.ts';

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

/**
 * Checks that adapters.json names what the schema has. Scopes are checked later: a company may add what they are of.
 *
 * @param reports of all lists: one without facts says why nothing is derived from its list
 * @throws OperatorMistakes
 */
export function checkOverrides(
  { fields, types }: Overrides,
  schema: GraphQLSchema,
  reports: readonly Report[],
  byIdFields: ReadonlyMap<GraphQLObjectType, unknown>,
): void {
  const mistakes: string[] = [];
  for (const [place, { scope, ...ofList }] of Object.entries(fields)) {
    if (scope !== undefined && Object.keys(ofList).length === 0) continue;
    const report = reports.find(({ subject }) => subject === place);
    const isDerived = Object.keys(report?.facts ?? {}).length > 0;
    if (isDerived || (ofList.skip && report)) continue;
    const why = report?.why.join(' ') ?? 'there is no such list.';
    mistakes.push(
      `fields.${place}: nothing is derived from it, because ${why} \`schema explain\` shows all lists.`,
    );
  }
  for (const [name, { byId }] of Object.entries(types)) {
    if (byId === null || byId === undefined) continue;
    if (byIdFields.has(schema.getType(name) as GraphQLObjectType)) continue;
    const field = `${schema.getQueryType()!.name}.${byId}`;
    mistakes.push(`types.${name}.byId: ${field} does not return ${name} by its id alone.`);
  }
  if (mistakes.length > 0) throw new OperatorMistakes(SUBJECT, mistakes);
}
