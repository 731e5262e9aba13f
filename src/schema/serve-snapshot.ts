import { readSnapshot } from './snapshot.ts';
import {
  createServedSchema,
  type ServedSchema,
  type ServedSchemaParts,
} from './served/served-schema.ts';

/** The settings on which the served schema depends. */
export interface SnapshotSettings extends Required<
  Pick<
    ServedSchemaParts,
    'mutations' | 'connectionMax' | 'drainMaxItems' | 'nodeInterface' | 'federationVersion'
  >
> {
  /** The file of the snapshot, for messages. */
  readonly schemaPath: string;
  readonly schemaPrefix: ServedSchemaParts['prefix'];
}

/**
 * Creates the schema that callers see for a snapshot. Nothing changes it afterwards.
 *
 * @param sdl the upstream's schema
 * @param overrides the parsed adapters.json; undefined without one
 * @param executor sends requests to the service; undefined: no operation is ever executed over the schema
 * @throws OperatorMistake
 */
export function serveSnapshot(
  sdl: string,
  { schemaPath, schemaPrefix, ...settings }: SnapshotSettings,
  overrides: unknown,
  executor?: ServedSchemaParts['executor'],
): ServedSchema {
  return createServedSchema({
    ...settings,
    snapshot: readSnapshot(sdl, schemaPath),
    overrides,
    executor,
    prefix: schemaPrefix,
  });
}
