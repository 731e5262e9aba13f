import { isSchema } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { OperatorMistakes } from '../errors.ts';
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

/** @param source the name of the file, for messages @throws OperatorMistakes */
export function checkGatewayConfig(exported: unknown, source: string): CheckedConfig {
  const mistakes = mistakesIn(exported);
  if (mistakes.length > 0) throw new OperatorMistakes(source, mistakes);
  const config = exported as GatewayConfig;
  const plugins = (config.plugins ?? []).filter((plugin): plugin is Plugin => !!plugin);
  return { ...config, source, plugins };
}

/** The rest of what is passed on to graphql-tools is checked by it. */
function mistakesIn(exported: unknown): string[] {
  if (!isPlain(exported)) return [NO_OBJECT];
  const { plugins = [], subschemas = [] } = exported;
  const arePlugins = Array.isArray(plugins) && plugins.every((it) => !it || isPlain(it));
  const areServices =
    Array.isArray(subschemas) && subschemas.every((it) => isPlain(it) && isSchema(it['schema']));
  return [
    ...Object.keys(exported)
      .filter((key) => !KEYS.includes(key))
      .map((key) => `${key} is none of the keys ${KEYS.join(', ')}.`),
    ...(arePlugins ? [] : [NO_PLUGINS]),
    ...(areServices ? [] : [NO_SERVICES]),
  ];
}

const KEYS = ['plugins', 'typeDefs', 'resolvers', 'subschemas'];

const NO_OBJECT =
  'Its default export must be an object: write `export default defineConfig({ … })`, and await a promise.';
const NO_PLUGINS =
  'plugins must be a list of objects with hooks: call a function, as in [useSentry()], and await a promise.';
const NO_SERVICES =
  'subschemas must be a list of { schema, executor }, with a GraphQLSchema: build SDL, as in buildSchema(sdl), and await a promise.';

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !('then' in value);
}
