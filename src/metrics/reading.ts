import type { Exposition } from './exposition.ts';

export interface DrainLoad {
  readonly running: number;
  readonly waiting: number;
}

export interface AnswerLoad {
  readonly bytes: number;
  readonly waiting: number;
}

export interface ReadingLoad {
  readonly drainLoad: () => DrainLoad;
  readonly answerLoad: () => AnswerLoad;
}

/** Lists that are walked, what the page indexes save of it, and what is held of answers. */
export function readingMetrics(
  { counter, gauge }: Exposition,
  { drainLoad, answerLoad }: ReadingLoad,
) {
  gauge({ name: 'recruiting_drains_running', help: 'Drains that run, MAX_DRAINS at most.' }, () => [
    [drainLoad().running],
  ]);
  gauge({ name: 'recruiting_drains_waiting', help: 'Drains that wait for a turn.' }, () => [
    [drainLoad().waiting],
  ]);
  gauge(
    {
      name: 'recruiting_answer_bytes',
      help: 'Bytes of answers that are read and sent, ANSWER_BYTES at most.',
    },
    () => [[answerLoad().bytes]],
  );
  gauge(
    {
      name: 'recruiting_answers_waiting',
      help: 'Parts of answers that wait for room among these.',
    },
    () => [[answerLoad().waiting]],
  );
  const walks = counter({
    name: 'recruiting_walks_total',
    help: 'Walks over lists that ended, shared ones once: whole, stopped (nobody wanted more), or by the code of an error.',
    labelNames: ['kind', 'outcome'],
  });
  const pages = counter({
    name: 'recruiting_pages_read_total',
    help: 'Pages of lists asked of the service.',
  });
  const planned = counter({
    name: 'recruiting_walk_plans_total',
    help: 'Drains and searches by whether an index of an earlier walk let them read several pages at a time.',
    labelNames: ['index'],
  });
  const lookups = counter({
    name: 'recruiting_index_lookups_total',
    help: 'Records looked for by their ids, by whether an index had a place for them.',
    labelNames: ['result'],
  });
  return {
    pageRead: () => pages(1),
    walkEnded: (kind: string, outcome: string) => walks(1, kind, outcome),
    walkPlanned: (hasIndex: boolean) => planned(1, hasIndex ? 'used' : 'unused'),
    placesLookedUp: (known: number, unknown: number) => {
      lookups(known, 'hit');
      lookups(unknown, 'miss');
    },
  };
}
