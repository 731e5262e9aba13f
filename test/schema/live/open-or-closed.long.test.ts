import { readFileSync } from 'node:fs';
import { buildSchema, NoSchemaIntrospectionCustomRule, specifiedRules, validate } from 'graphql';
import { expect, test } from 'vitest';
import { keyOf, partsOf, withoutParts } from '../../../src/schema/live/closed.ts';
import { compareLive } from '../../../src/schema/live/compare-live.ts';
import type { Execute } from '../../../src/schema/live/introspect.ts';
import { readSnapshot } from '../../../src/schema/snapshot.ts';
import { fullSdl } from '../../support/imitations/honest.ts';

const SCHEMAS = {
  'schema/results.graphql': readFileSync('schema/results.graphql', 'utf8'),
  'a schema with everything': fullSdl,
};

/** Parts that are gone at the same time, far from each other: each part is among them once. */
const TOGETHER = 5;

test.each(Object.entries(SCHEMAS))(
  'without introspection, the removed parts of %s are found, and nothing else',
  async (name, sdl) => {
    const snapshot = readSnapshot(sdl, name);
    const { selectable, inputParts } = partsOf(snapshot, new Set());
    const keys = [...selectable, ...inputParts].map(keyOf);
    const steps = Math.ceil(keys.length / TOGETHER);
    for (let step = 0; step < steps; step += 1) {
      const gone = keys.filter((_, at) => at % steps === step);
      const live = withoutParts(snapshot, new Set(gone));
      const { difference, acceptedSdl } = await compareLive({
        snapshot,
        execute: closed(live),
        signal: new AbortController().signal,
        maxRequests: 100,
      });
      expect(difference.breaking, gone.join(', ')).not.toHaveLength(0);
      expect(reached(acceptedSdl()), gone.join(', ')).toEqual(reached(live));
    }
  },
);

/** The keys of the parts that queries reach. */
function reached(sdl: string): string[] {
  const { selectable, inputParts } = partsOf(buildSchema(sdl), new Set());
  return [...selectable, ...inputParts].map(keyOf).toSorted();
}

/** A service with this schema that does not report it. */
function closed(sdl: string): Execute {
  const schema = buildSchema(sdl);
  return async ({ document }) => {
    const rules = [...specifiedRules, NoSchemaIntrospectionCustomRule];
    const errors = validate(schema, document, rules);
    expect(errors.length).toBeGreaterThan(0);
    return { errors };
  };
}
