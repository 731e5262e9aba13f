import { z } from 'zod';
import { OperatorMistake } from '../../errors.ts';

/*
 * adapters.json: the operator overrides the result of the detection, and restricts who may read what.
 */

/** The scopes that every gateway has: docs/authentication.md. */
const OPERATION_SCOPES: ReadonlySet<string> = new Set(['read', 'drain', 'write', 'router']);

const NAME = z
  .string()
  .regex(/^(?!__|_rs)[_A-Za-z]\w*$/, 'must be a GraphQL name that begins neither with __ nor _rs');

/** As OAuth writes it (RFC 6749, 3.3), without what separates the scopes of an API key. */
const SCOPE = z
  .string()
  .regex(
    /^[!#-*\-.-[\]-~]+$/,
    'must be a scope: printable ASCII without space, comma, +, " and \\',
  );

/** Who may read a type or a field. */
const GUARD = {
  scope: SCOPE.refine((scope) => !OPERATION_SCOPES.has(scope), {
    message:
      'must not be read, drain, write or router, which say what operations a caller may send',
  }).optional(),
};

/** What is decided about one field. Everything except the guard is for paged fields. */
const FIELD = z.strictObject({
  skip: z.boolean().optional(),
  all: NAME.optional(),
  connection: NAME.optional(),
  page: z.int().positive().optional(),
  /** The field that identifies a record, where none is called `id`. */
  identity: NAME.optional(),
  /** The page's field with the number of records of all pages. */
  count: NAME.optional(),
  /** The type that is the page, where several types of a result are pages. */
  member: NAME.optional(),
  /** The argument with the cursor, where several may be the one. */
  after: NAME.optional(),
  ...GUARD,
});

/** What is decided about one type: how its records are found by id, and how its connections are named. */
const TYPE = z.strictObject({
  /** The root field that returns a record by its id; null: no field does. */
  byId: NAME.nullable().optional(),
  /** The root list in which records are looked up; null: no list is used. */
  list: NAME.nullable().optional(),
  /** The name of its connection type. */
  connection: NAME.optional(),
  edge: NAME.optional(),
  ...GUARD,
});

const FILE = z.strictObject({
  fields: z.record(z.string(), FIELD).optional(),
  types: z.record(z.string(), TYPE).optional(),
});

export type FieldOverride = Readonly<z.infer<typeof FIELD>>;
export type TypeOverride = Readonly<z.infer<typeof TYPE>>;
export type TypeOverrides = ReadonlyMap<string, TypeOverride>;
export type Guard = Pick<FieldOverride, keyof typeof GUARD>;

/** An entry that says who may read something. */
export interface GuardEntry extends Guard {
  readonly section: 'types' | 'fields';
  /** The name of a type, or the coordinate of a field. */
  readonly place: string;
}

/** The entries of adapters.json that can be read, even if others cannot: all mistakes are reported together. */
export interface Overrides {
  /** By coordinate, for example `Query.persons`. */
  readonly fields: Map<string, FieldOverride>;
  readonly types: Map<string, TypeOverride>;
  /** What does not have the form of adapters.json. */
  readonly mistakes: readonly string[];
}

/**
 * Reads adapters.json, whatever the schema.
 *
 * @param json undefined if the file does not exist
 */
export function readOverrides(json: unknown): Overrides {
  const read = FILE.safeParse(json ?? {});
  const { fields, types } = (json ?? {}) as Record<string, unknown>;
  const mistakes = (read.error?.issues ?? []).map((issue) => {
    const place = issue.path.join('.') || 'The file';
    if (issue.code !== 'unrecognized_keys') return `${place}: ${issue.message}.`;
    const unknown = issue.keys.map((key) => `"${key}"`).join(', ');
    return `${place}: ${unknown} is unknown. Write ${KEYS[String(issue.path[0] ?? '')]}.`;
  });
  return { fields: entriesOf(fields, FIELD), types: entriesOf(types, TYPE), mistakes };
}

/** The scopes that adapters.json gives to types and fields, whatever the schema. */
export function scopesIn(json: unknown): readonly string[] {
  const { fields, types } = readOverrides(json);
  const scopes = [...fields.values(), ...types.values()].map(({ scope }) => scope);
  return [...new Set(scopes)].filter((scope) => scope !== undefined);
}

function entriesOf<Entry extends object>(record: unknown, shape: z.ZodType<Entry>) {
  const entries = typeof record === 'object' && record !== null ? Object.entries(record) : [];
  return new Map(
    entries.flatMap(([key, entry]) => {
      const { data } = shape.safeParse(entry);
      return data === undefined ? [] : [[key, data] as const];
    }),
  );
}

/** The keys allowed at each depth, to suggest in place of an unknown one. */
const KEYS: Readonly<Record<string, string>> = {
  '': listed(FILE.shape),
  fields: listed(FIELD.shape),
  types: listed(TYPE.shape),
};

function listed(shape: object): string {
  const keys = Object.keys(shape).map((key) => `"${key}"`);
  return `${keys.slice(0, -1).join(', ')} and ${keys.at(-1)}`;
}

/** Whether an entry says only who may read something. */
export function isGuardOnly({ scope, ...others }: FieldOverride | TypeOverride): boolean {
  return (
    scope !== undefined && Object.values(others).every((value: unknown) => value === undefined)
  );
}

/** Lists every mistake in adapters.json, each with its correction. */
export class OverridesError extends OperatorMistake {
  override name = 'OverridesError';

  /** @param advice for all of them, as a sentence */
  constructor(mistakes: readonly string[], advice?: string) {
    const many = mistakes.length === 1 ? 'a mistake' : `${mistakes.length} mistakes`;
    super(
      [
        `adapters.json, beside the schema snapshot, has ${many}:`,
        ...mistakes.map((mistake) => `- ${mistake}`),
        ...(advice === undefined ? [] : [advice]),
      ].join('\n'),
    );
  }
}
