import { isSchema, parse } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { z } from 'zod';
import { OperatorMistake } from '../errors.ts';
import type { Additions } from '../additions/additions.ts';

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

/** @param source the name of the file, for messages @throws OperatorMistake with all mistakes */
export function checkGatewayConfig(exported: unknown, source: string): CheckedConfig {
  const { error } = shape.safeParse(exported);
  if (error) throw new OperatorMistake(`${source} has mistakes:\n${z.prettifyError(error)}`);
  // The original, and not the copy of zod: a plugin or a schema must stay the same object.
  const config = exported as GatewayConfig;
  const plugins = (config.plugins ?? []).filter((plugin): plugin is Plugin => !!plugin);
  return { ...config, source, plugins };
}

const plugin = z.custom(
  (value) => value === undefined || value === null || value === false || isPlain(value),
  'must be a plugin, which is an object with hooks: call a function, as in useSentry(), and await a promise',
);

const subschema = z.custom(
  (value) => isPlain(value) && isSchema(value['schema']) && isExecutor(value['executor']),
  'must be { schema, executor }, with a GraphQLSchema and a function: build SDL, as in buildSchema(sdl), and await a promise',
);

const typeDefs = z
  .unknown()
  .superRefine((value, context) => {
    for (const each of [value].flat(Infinity)) {
      if (typeof each !== 'string') continue;
      try {
        parse(each);
      } catch (error) {
        // With the line and the column.
        context.addIssue(`must be SDL: ${String(error)}`);
      }
    }
  })
  .optional();

/** The rest of what is passed on to graphql-tools is checked by it. */
const shape = z.strictObject(
  {
    plugins: z.array(plugin, 'must be a list of plugins, as in [useSentry()]').optional(),
    typeDefs,
    resolvers: z.unknown().optional(),
    subschemas: z
      .array(subschema, 'must be a list of services, as in [{ schema, executor }]')
      .optional(),
  },
  {
    error: ({ code }) =>
      code === 'invalid_type'
        ? 'Its default export must be an object: write `export default defineConfig({ … })`, and await a promise'
        : undefined,
  },
);

function isExecutor(value: unknown): boolean {
  return value === undefined || typeof value === 'function';
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !('then' in value);
}
