import { isSchema } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import * as v from 'valibot';
import { OperatorMistake } from '../errors.ts';
import type { Additions } from '../additions/additions.ts';

/** What a company adds to the gateway: the default export of gateway.config.ts. */
export interface GatewayConfig extends Omit<Additions, 'source'> {
  /** Plugins for Yoga and Envelop. Those that are false, null or undefined are left out. */
  readonly plugins?: readonly PluginOrNone[] | undefined;
}

// As Yoga declares it: a plugin may require a special context, which the type of a list cannot express.
// oxlint-disable-next-line no-empty-object-type
type PluginOrNone = Plugin | {} | false | null | undefined;

/** What a company adds, checked as far as this is possible without the schema. */
export interface CheckedConfig extends Additions {
  readonly plugins: readonly Plugin[];
}

/** Returns the configuration unchanged. Lets editors check and complete it. */
export function defineConfig(config: GatewayConfig): GatewayConfig {
  return config;
}

/** @param source the name of the file, for messages @throws OperatorMistake with all mistakes */
export function checkGatewayConfig(exported: unknown, source: string): CheckedConfig {
  const { issues } = v.safeParse(shape, exported);
  if (issues) throw new OperatorMistake(`${source} has mistakes:\n${v.summarize(issues)}`);
  // The original, and not a copy: a plugin or a schema must stay the same object.
  const config = exported as GatewayConfig;
  const plugins = (config.plugins ?? []).filter((plugin): plugin is Plugin => !!plugin);
  return { ...config, source, plugins };
}

const plugin = v.custom(
  (value) => value === undefined || value === null || value === false || isPlain(value),
  'must be a plugin, which is an object with hooks: call a function, as in useSentry(), and await a promise',
);

const subschema = v.custom(
  (value) => isPlain(value) && isSchema(value['schema']),
  'must be { schema, executor }, with a GraphQLSchema: build SDL, as in buildSchema(sdl), and await a promise',
);

/** The rest of what is passed on to graphql-tools is checked by it. */
const shape = v.pipe(
  v.custom(
    isPlain,
    'Its default export must be an object: write `export default defineConfig({ … })`, and await a promise',
  ),
  v.strictObject(
    {
      plugins: v.optional(v.array(plugin, 'must be a list of plugins, as in [useSentry()]')),
      typeDefs: v.optional(v.unknown()),
      resolvers: v.optional(v.unknown()),
      subschemas: v.optional(
        v.array(subschema, 'must be a list of services, as in [{ schema, executor }]'),
      ),
    },
    ({ expected, message }) => (expected === 'never' ? 'Unknown key' : message),
  ),
);

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !('then' in value);
}
