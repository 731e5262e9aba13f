import { pathOf } from '../child-processes.ts';
import { FRONT_DOOR, keyWith, startGateway } from '../gateway.ts';
import { startLoad } from '../load.ts';
import { CONNECTIONS, measureInTurn, PAGES, pagesFrom } from '../measure-pages.ts';
import { startDocumented, startHive } from '../peers.ts';
import { entitiesOf, ownFieldsOf } from '../persons-pages.ts';
import type { Benchmark } from '../report.ts';
import { startUpstream } from '../services.ts';

const OPTIONS = { rounds: 6, ms: 2_000, warmUpMs: 4_000 };

/** Added fields slow down only the operations that select them. Plugins are measured too. */
export const additions: Benchmark = {
  title: `the page with a plugin that has every hook, with an own field in each record, and its records as entities, ${PAGES} pages over ${CONNECTIONS} connections`,
  measure: async () => {
    await using upstream = await startUpstream({ persons: 5_000 });
    await using load = startLoad();
    await using documented = await startDocumented(upstream);
    await using hive = await startHive(upstream);
    await using alone = await startGateway(upstream, { env: FRONT_DOOR });
    await using hooked = await startGateway(upstream, {
      env: { ...FRONT_DOOR, GATEWAY_CONFIG: pathOf('processes/every-hook.config.mts') },
    });
    await using extended = await startGateway(upstream, {
      env: { ...FRONT_DOOR, GATEWAY_CONFIG: pathOf('processes/own-field.config.mts') },
    });
    await using routed = await startGateway(upstream, {
      env: { ...FRONT_DOOR, AUTH_API_KEYS: keyWith('read+drain+router') },
    });
    const contenders = {
      documented: await pagesFrom(documented),
      hive: await pagesFrom(hive),
      alone: await pagesFrom(alone),
      hooked: await pagesFrom(hooked),
      untouched: await pagesFrom(extended),
      ownField: { server: extended, bodies: await ownFieldsOf(extended, PAGES) },
      entities: { server: routed, bodies: await entitiesOf(routed, PAGES) },
    };
    const rounds = await measureInTurn(load, upstream, contenders, OPTIONS);
    type Name = keyof typeof contenders;
    const rates = (above: Name, below: Name) =>
      rounds.map((round) => round[above].rate / round[below].rate);
    return [
      {
        what: 'with every hook: requests/s, of documented stitching',
        figures: rates('hooked', 'documented'),
        unit: 'x',
        promise: { atLeast: 4 },
      },
      {
        what: 'with every hook: requests/s, of Hive Gateway',
        figures: rates('hooked', 'hive'),
        unit: 'x',
        promise: { atLeast: 2.2 },
      },
      {
        what: 'with every hook: CPU, of the page without a plugin',
        figures: rounds.map((round) => round.hooked.cpu / round.alone.cpu),
        unit: 'x',
      },
      {
        what: 'with one own field: requests/s, of documented stitching without it',
        figures: rates('ownField', 'documented'),
        unit: 'x',
        promise: { atLeast: 1.8 },
      },
      {
        what: '_entities of the 50 ids of a page: CPU, of the page with an own field',
        figures: rounds.map((round) => round.entities.cpu / round.ownField.cpu),
        unit: 'x',
        promise: { atMost: 2 },
      },
      {
        what: 'a page that touches nothing added: CPU, of the page without additions',
        figures: rounds.map((round) => round.untouched.cpu / round.alone.cpu),
        unit: 'x',
        promise: { atMost: 1.1 },
      },
    ];
  },
};
