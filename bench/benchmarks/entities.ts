import { ask, askPage, timed } from '../ask.ts';
import { bareLoop, readAtATime } from '../bare-pages.ts';
import { startGateway } from '../gateway.ts';
import { median, type Benchmark } from '../report.ts';
import { startBenchSandbox } from '../services.ts';

const PERSONS = 5_000;
const LATENCY = 20;
const ROUNDS = 5;
const REPRESENTATIONS = 1_000;
/** Requests of one operation in flight. */
const AT_A_TIME = 8;
const SINGLE = 40;

const ENTITIES = /* GraphQL */ `
  query ($representations: [_Any!]!) {
    _entities(representations: $representations) {
      ... on Person {
        id
        firstName
      }
    }
  }
`;

type Entities = { _entities: ({ id: string } | null)[] };

export const entities: Benchmark = {
  title: `${REPRESENTATIONS} entities spread over ${PERSONS} persons that the service can only list, ${LATENCY} ms upstream latency, ${ROUNDS} rounds`,
  measure: async () => {
    await using sandbox = await startBenchSandbox({ persons: PERSONS, latency: LATENCY });
    await using gateway = await startGateway(sandbox);
    const { allPersons } = await ask<{ allPersons: { id: string }[] }>(
      gateway,
      '{ allPersons { id } }',
    );
    const step = PERSONS / REPRESENTATIONS;
    const sample = allPersons.filter((_, place) => place % step === 0).map(({ id }) => id);
    const cursors = await bareLoop(sandbox);
    await find(sample);
    const rounds = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const { requests: before } = await sandbox.tell({ do: 'look' });
      const ours = await timed(() => find(sample));
      const { requests: after } = await sandbox.tell({ do: 'look' });
      const bare = await timed(() => readAtATime(sandbox, cursors, AT_A_TIME));
      rounds.push({ ours, bare, requests: after - before, single: await measureSingle() });
    }
    return [
      { what: 'all pages, bare, 8 at a time', figures: rounds.map(({ bare }) => bare), unit: 'ms' },
      {
        what: `${REPRESENTATIONS} entities: upstream requests per page of the list`,
        figures: rounds.map(({ requests }) => requests / cursors.length),
        unit: 'x',
        promise: { atMost: 1.1 },
      },
      {
        what: `${REPRESENTATIONS} entities: take as long as all pages, bare`,
        figures: rounds.map(({ ours, bare }) => ours / bare),
        unit: 'x',
        promise: { atMost: 1.5 },
      },
      {
        what: 'one entity',
        figures: rounds.map(({ single }) => single),
        unit: 'upstream latencies',
        promise: { atMost: 1.3 },
      },
    ];

    async function find(ids: readonly string[]): Promise<void> {
      const representations = ids.map((id) => ({ __typename: 'Person', id }));
      const returned = (await ask<Entities>(gateway, ENTITIES, { representations }))._entities;
      // The speed of a wrong answer means nothing.
      if (returned.some((each, place) => each?.id !== ids[place]))
        throw new Error('Not those asked for.');
    }

    /** Alternates both, so that they run under the same conditions. */
    async function measureSingle(): Promise<number> {
      const bare: number[] = [];
      const ours: number[] = [];
      for (let request = 0; request < SINGLE; request += 1) {
        bare.push(await timed(() => askPage(sandbox, 10)));
        ours.push(await timed(() => find([sample[request * 7]!])));
      }
      return median(ours) / median(bare);
    }
  },
};
