import { setImmediate } from 'node:timers/promises';
import { walkList, type ListWalkOptions, type PagedList } from '../../src/paging/list-walk.ts';
import { Pace } from '../../src/paging/pace.ts';
import { PageIndexes } from '../../src/paging/page-index.ts';
import { PageSize } from '../../src/paging/page-size.ts';
import { HeldRequests, type Change, type ModelService } from './model-service.ts';

export interface Walked {
  /** The records that were returned. */
  readonly serials: readonly number[];
  readonly error: Error | undefined;
}

/** What happens during a walk; times are numbers of answers. */
export interface Meanwhile {
  readonly changes?: readonly { readonly change: Change; readonly after: number }[];
  /** From when on, and how many times in a row, the service fails. */
  readonly failure?: { readonly after: number; readonly answers: number } | undefined;
}

/** One list of a model service, and what the walks of it share. */
export class WalkWorld {
  readonly service: ModelService;
  readonly held: HeldRequests;
  readonly list: PagedList<number>;

  constructor(
    service: ModelService,
    concurrency: number,
    { maxIds = 2_000, usual = service.limit } = {},
  ) {
    this.service = service;
    this.held = new HeldRequests(service);
    this.list = {
      name: 'letters',
      fetchPage: this.held.fetchPage,
      indexes: new PageIndexes(maxIds),
      size: new PageSize({ elapsed: () => 0 }, usual),
      pace: new Pace(concurrency),
    };
  }

  /** @param choose returns which of the waiting requests is answered next: any whole number */
  async walk(
    choose: () => number = () => 0,
    part: ListWalkOptions<number> = { after: null },
    { changes = [], failure }: Meanwhile = {},
  ): Promise<Walked> {
    const { held, service } = this;
    const state = { isOver: false };
    const walking = collect(this.list, part).finally(() => {
      state.isOver = true;
    });
    const due = changes.toSorted((a, b) => a.after - b.after);
    for (let turn = 0; !state.isOver; turn += 1) {
      await setImmediate();
      while (due[0] && due[0].after <= turn) service.apply(due.shift()!.change);
      held.fails = failure !== undefined && isWithin(turn, failure);
      if (held.waiting > 0) held.answerOne(choose());
    }
    // Later changes are applied too, so that all walks have the same history.
    for (const { change } of due) service.apply(change);
    return walking;
  }
}

function isWithin(turn: number, { after, answers }: { after: number; answers: number }): boolean {
  return turn >= after && turn < after + answers;
}

async function collect(list: PagedList<number>, part: ListWalkOptions<number>): Promise<Walked> {
  const serials: number[] = [];
  try {
    for await (const { page, offsets } of walkList(list, part)) {
      serials.push(...offsets.map((offset) => page.records[offset]!));
    }
  } catch (error) {
    return { serials, error: error as Error };
  }
  return { serials, error: undefined };
}
