import { buildSchema } from 'graphql';
import {
  createServedSchema,
  type ServedSchemaParts,
} from '../../../src/schema/served/served-schema.ts';

/** The schema that is served for a schema of the service, without a gateway. */
export function servedOffline(
  sdl: string,
  parts: Pick<Partial<ServedSchemaParts>, 'prefix' | 'overrides' | 'nodeInterface'> = {},
) {
  return createServedSchema({
    snapshot: buildSchema(sdl),
    mutations: 'off',
    connectionMax: 500,
    drainMaxItems: 1_000,
    totalCountSeconds: 300,
    ...parts,
  });
}
