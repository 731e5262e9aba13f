import {
  execute,
  extendSchema,
  parse,
  printSchema,
  type GraphQLFieldResolver,
  type GraphQLSchema,
} from 'graphql';
import type { Additions } from '../../src/additions/additions.ts';
import { secondService } from '../additions/people.ts';
import { forwardedService, renamedSchema } from '../service/clashing.ts';
import { fullService } from '../service/full.ts';
import { resultsSchema, richSchema } from '../service/made.ts';
import { servedOffline } from '../support/gateway/served.ts';
import type { Answer, Ask } from './cursors.ts';
import { vocabularyOf, type Vocabulary } from './operation.ts';
import { createOracle } from './oracle.ts';

/** A service whose records never change, and what the gateway makes of its schema. */
export interface World extends Vocabulary {
  /** That of the service, executable. */
  readonly schema: GraphQLSchema;
  readonly snapshot: string;
  readonly prefix?: string;
  readonly overrides?: unknown;
  readonly additions?: Additions;
  /** Answers without the gateway. */
  readonly ask: Ask;
}

/** Nullable records, unions, interfaces, failing fields, errors as data, names that clash, directives of its own. */
export const WORLDS: Readonly<Record<string, () => World>> = {
  full: () => worldOf(fullService().schema),
  'full with added fields': addedWorld,
  rich: () => worldOf(richSchema()),
  'rich with a prefix': () => worldOf(richSchema(), { prefix: 'Recruiting' }),
  results: () => worldOf(resultsSchema()),
  'results that are errors': () => worldOf(resultsSchema({ managers: false })),
  'names with a prefix': () => ({
    ...worldOf(renamedSchema(), { prefix: 'Recruiting' }),
    mutates: true,
  }),
  forwarded: forwardedWorld,
};

/** Operations that the service itself understands. */
function forwardedWorld(): World {
  const { schema } = forwardedService();
  return {
    ...vocabularyOf(schema),
    schema,
    snapshot: printSchema(schema),
    ask: (operation) => executeOver(schema, operation),
  };
}

/** Added fields say what their resolvers got of a record, and what a second service knows about it. */
function addedWorld(): World {
  const own = {
    Candidate: seeing('id', 'name', 'stage'),
    Vacancy: seeing('id', 'open'),
    Robot: seeing('id', 'model'),
    Query: { selectionSet: '{ __typename }', resolve: () => 'root', ofService: () => 'root' },
  };
  const types = Object.keys(own) as (keyof typeof own)[];
  const typeDefs = types.map((type) => `extend type ${type} { own: String! }`).join(' ');
  const sdl = `${typeDefs} extend type Candidate { rating: String }`;
  const resolvers = Object.fromEntries(types.map((type) => [type, { own: own[type].ofService }]));
  const knowing = fullService(sdl, { ...resolvers, Candidate: { ...resolvers.Candidate, rating } });
  return {
    ...worldOf(fullService().schema, { added: { sdl, service: knowing.schema } }),
    additions: {
      typeDefs,
      resolvers: Object.fromEntries(
        types.map((type) => {
          const { selectionSet, resolve } = own[type];
          return [type, { own: { selectionSet, resolve } }];
        }),
      ),
      subschemas: [secondService('rating', undefined, { of: 'Candidate', idType: 'Int' })],
    },
    addedFields: new Set([...types.map((type) => `${type}.own`), 'Candidate.rating']),
  };
}

const rating = ({ id }: { readonly id: number }) => `rating of ${id}`;

/** A field whose resolver returns what it got of these fields, and the same where the service has it. */
function seeing(...names: string[]) {
  const resolve = (record: Readonly<Record<string, unknown>>) =>
    names.map((name) => String(record[name])).join('|');
  const ofService: GraphQLFieldResolver<unknown, unknown> = (record, _, context, info) => {
    const fields = info.parentType.getFields();
    return names.map((name) => String(fields[name]!.resolve!(record, {}, context, info))).join('|');
  };
  return { selectionSet: `{ ${names.join(' ')} }`, resolve, ofService };
}

interface WorldParts {
  readonly prefix?: string;
  /** The parsed adapters.json. */
  readonly overrides?: unknown;
  /** Fields that the gateway adds, and the service as it would be if it had them itself. */
  readonly added?: { readonly sdl: string; readonly service: GraphQLSchema };
}

export function worldOf(schema: GraphQLSchema, parts: WorldParts = {}): World {
  const { added } = parts;
  const snapshot = printSchema(schema);
  const made = servedOffline(snapshot, parts);
  const served = added ? { ...made, schema: extendSchema(made.schema, parse(added.sdl)) } : made;
  const lists = createOracle(added?.service ?? schema, served);
  return { ...parts, schema, snapshot, served, ask: (operation) => executeOver(lists, operation) };
}

async function executeOver(
  schema: GraphQLSchema,
  { query, variables, operationName }: Parameters<Ask>[0],
): Promise<Answer> {
  const document = parse(query);
  const result = await execute({ schema, document, variableValues: variables, operationName });
  return JSON.parse(JSON.stringify(result)) as Answer;
}
