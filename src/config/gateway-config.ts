import { GraphQLError, isSchema, Kind, parse, Source, type DocumentNode } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { z } from 'zod';
import { OperatorMistakes } from '../errors.ts';
import type { Additions } from '../additions/additions.ts';
import { nearestWord } from '../words.ts';

/** What a company adds to the gateway: the default export of gateway.config.ts. */
export interface GatewayConfig {
  /** Plugins for Yoga and Envelop. Those that are false, null or undefined are left out. */
  readonly plugins?: readonly PluginOrNone[] | undefined;
  /** Types and fields, as SDL, with the names that callers see. */
  readonly typeDefs?: Additions['typeDefs'];
  /** The resolvers of these fields, as `stitchSchemas` takes them. */
  readonly resolvers?: Additions['resolvers'];
  /** Further services, as `stitchSchemas` takes them. */
  readonly subschemas?: Additions['subschemas'];
}

// As Yoga declares it: a plugin may require a special context, which the type of a list cannot express.
// oxlint-disable-next-line no-empty-object-type
type PluginOrNone = Plugin | {} | false | null | undefined;

/** What a company adds, checked as far as this is possible without the schema. */
export interface CheckedConfig extends Omit<GatewayConfig, 'plugins'> {
  /** The name of the file, for messages. */
  readonly source: string;
  readonly plugins: readonly Plugin[];
}

/** Returns the configuration unchanged. Lets editors check and complete it. */
export function defineConfig(config: GatewayConfig): GatewayConfig {
  return config;
}

/** @param source the name of the file, for messages @throws OperatorMistakes */
export function checkGatewayConfig(exported: unknown, source: string): CheckedConfig {
  const read = gatewayConfig.safeParse(exported);
  // The original, and not the copy of zod: a plugin or a schema must stay the same object.
  if (read.success) {
    const config = exported as GatewayConfig;
    return {
      ...config,
      source,
      plugins: (config.plugins ?? []).filter((plugin): plugin is Plugin => !!plugin),
    };
  }
  throw new OperatorMistakes(source, read.error.issues.flatMap(mistakesOf));
}

const plugin = checked((value) => {
  if (typeof value === 'function') return 'is a function. Call it, as in useSentry()';
  if (isPromise(value)) return 'is a promise. Await it, as in await useSentry()';
  const isLeftOut = value === undefined || value === null || value === false;
  return isLeftOut || isObject(value)
    ? undefined
    : 'must be a plugin, which is an object with hooks';
});

const typeDefs: z.ZodType = checked((value) => {
  for (const each of [value].flat(Infinity)) {
    if (typeof each !== 'string' && !isDocument(each)) {
      return 'must be SDL: a string, a document, or a list of them';
    }
    const mistake = mistakeInSdl(each);
    if (mistake !== undefined) return mistake;
  }
  return undefined;
});

const resolvers = checked((value) => {
  for (const each of [value].flat()) {
    if (!isObject(each) || isPromise(each)) {
      return 'must be an object with the fields of each type, for example { Person: { fullName: (person) => … } }';
    }
    for (const [type, fields] of Object.entries(each)) {
      if (!isObject(fields)) {
        return `must have an object with fields for each type. That of ${type} is ${kindOf(fields)}`;
      }
    }
  }
  return undefined;
});

const subschema = checked((value) => {
  if (isPromise(value)) return 'is a promise. Await it';
  if (isSchema(value)) return 'is a schema. Write { schema, executor }';
  if (!isObject(value)) return 'must be an object { schema, executor }';
  const { schema, executor, merge } = value;
  if (isPromise(schema)) return 'has a promise as its schema. Await it, as in schema: await load()';
  if (typeof schema === 'string' || isDocument(schema)) {
    return 'has SDL as its schema. Build a schema of it, as in schema: buildSchema(sdl)';
  }
  if (!isSchema(schema)) return 'must have a schema, which is a GraphQLSchema';
  if (executor !== undefined && typeof executor !== 'function') {
    return `has ${kindOf(executor)} as its executor, which must be a function`;
  }
  if (merge !== undefined && !isObject(merge)) {
    return 'must have an object as merge, for example { Person: { selectionSet, fieldName, … } }';
  }
  return undefined;
});

const shape = {
  plugins: z.array(plugin, 'must be a list of plugins, for example [useSentry()]').optional(),
  typeDefs: typeDefs.optional(),
  resolvers: resolvers.optional(),
  subschemas: z
    .array(subschema, 'must be a list of services, for example [{ schema, executor }]')
    .optional(),
};

const gatewayConfig = z
  .unknown()
  .superRefine((value, context) => {
    const fault = faultOfExport(value);
    if (fault !== undefined) context.addIssue({ code: 'custom', message: fault, continue: false });
  })
  .pipe(z.strictObject(shape));

function faultOfExport(value: unknown): string | undefined {
  if (value === undefined) return `It has no default export. ${EXPORT}`;
  if (isPromise(value)) {
    return 'Its default export is a promise. Await it in the file: `export default defineConfig(await …)`';
  }
  if (typeof value === 'function') {
    return `Its default export is a function, and not what the function returns. ${EXPORT}`;
  }
  return isObject(value) ? undefined : `Its default export is ${kindOf(value)}. ${EXPORT}`;
}

const EXPORT = 'Write `export default defineConfig({ … })`';

function mistakesOf(issue: z.core.$ZodIssue): string[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => {
      const known = Object.keys(shape);
      const meant = nearestWord(key, known);
      return `${key} is not known. ${meant === undefined ? `There are ${known.join(', ')}.` : `Was ${meant} meant?`}`;
    });
  }
  const place = issue.path
    .map((key) => (typeof key === 'number' ? `[${key}]` : String(key)))
    .join('');
  return [`${place === '' ? '' : `${place} `}${issue.message}.`];
}

/** A value that is passed on to graphql-tools or Yoga. @param faultOf returns what follows its name in the message */
function checked(faultOf: (value: unknown) => string | undefined) {
  return z.unknown().superRefine((value, context) => {
    const message = value === undefined ? undefined : faultOf(value);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  });
}

function mistakeInSdl(sdl: string | DocumentNode): string | undefined {
  try {
    const { definitions } = typeof sdl === 'string' ? parse(new Source(sdl)) : sdl;
    const isOperation = definitions.some(
      ({ kind }) => kind === Kind.OPERATION_DEFINITION || kind === Kind.FRAGMENT_DEFINITION,
    );
    return isOperation ? 'must be definitions of types, and not an operation' : undefined;
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    const [at] = error.locations ?? [];
    return `is not valid SDL: ${error.message.replace(/\.$/, '')}${at ? `, in line ${at.line}, column ${at.column}` : ''}`;
  }
}

function isDocument(value: unknown): value is DocumentNode {
  return isObject(value) && value['kind'] === Kind.DOCUMENT && Array.isArray(value['definitions']);
}

function isPromise(value: unknown): boolean {
  return isObject(value) && typeof value['then'] === 'function';
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
