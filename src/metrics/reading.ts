import { Counter, Gauge, type Registry } from 'prom-client';

export interface DrainLoad {
  readonly running: number;
  readonly waiting: number;
}

/** Lists that are walked, and what the page indexes save of it. */
export function readingMetrics(registry: Registry, load: () => DrainLoad) {
  const registers = [registry];
  const gauge = (name: string, help: string, value: () => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(value());
      },
    });
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
    new Counter({ name, help, labelNames, registers });

  gauge('recruiting_drains_running', 'Drains that run, MAX_DRAINS at most.', () => load().running);
  gauge('recruiting_drains_waiting', 'Drains that wait for a turn.', () => load().waiting);
  const walks = counter(
    'recruiting_walks_total',
    'Walks over lists that ended, shared ones once: whole, stopped (nobody wanted more), or by the code of an error.',
    ['kind', 'outcome'],
  );
  const pages = counter('recruiting_pages_read_total', 'Pages of lists asked of the service.');
  const planned = counter(
    'recruiting_walk_plans_total',
    'Drains and searches by whether an index of an earlier walk let them read several pages at a time.',
    ['index'],
  );
  const lookups = counter(
    'recruiting_index_lookups_total',
    'Records looked for by their ids, by whether an index had a place for them.',
    ['result'],
  );
  return {
    pageRead: () => pages.inc(),
    walkEnded: (kind: string, outcome: string) => walks.inc({ kind, outcome }),
    walkPlanned: (hasIndex: boolean) => planned.inc({ index: hasIndex ? 'used' : 'unused' }),
    placesLookedUp: (known: number, unknown: number) => {
      lookups.inc({ result: 'hit' }, known);
      lookups.inc({ result: 'miss' }, unknown);
    },
  };
}
