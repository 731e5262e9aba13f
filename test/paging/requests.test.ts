/** How many requests it takes to read a list whose pages have at most 50 records. */
import { expect, test } from 'vitest';
import { KINDS, type Change } from '../service/list-model.ts';
import { PageSize } from '../../src/paging/page-size.ts';
import { walkList } from '../../src/paging/walk.ts';
import { recordsOf, World, type WorldOptions } from './world.ts';

type Read = (world: World) => Promise<unknown>;

const unknown: Read = async () => {};
const known =
  (...changes: Change[]): Read =>
  async (world) => {
    await world.drain();
    for (const change of changes) world.service.apply(change);
  };
const smallPages: Read = ({ list, clock }) =>
  recordsOf(walkList({ ...list, size: new PageSize(clock, 15) }, { after: null }));
const part =
  (records: number): Read =>
  (world) =>
    world.drain({ after: null, records });
const whole: Read = async (world) =>
  expect((await world.walk()).records).toEqual(world.service.shown);
const pages =
  (first: number): Read =>
  async (world) =>
    expect(await world.pageThrough(first)).toEqual(world.service.shown);
const window =
  (first: number | null): Read =>
  async (world) =>
    expect((await world.read({ first })).records).toHaveLength(first ?? 50);
const find =
  (...serials: number[]): Read =>
  async (world) =>
    expect(await world.find(serials)).toEqual(
      serials.map((serial) => (world.service.shown.includes(serial) ? serial : undefined)),
    );

const changed: Read = async (world) => {
  await world.find([60]);
  world.known.forget();
};

const inserted = (at: number, count = 1): Change => ({ do: 'insert', at, count });
const FIFTY = Array.from({ length: 50 }, (_, at) => 100 + at);
const SMALL = { limit: 20 };
const LONG = { ...SMALL, length: 2_000, usual: 50 };

test.each<[string, WorldOptions, before: Read, read: Read, most: number]>([
  ['two pages of a known list', SMALL, known(), part(21), 2],
  ['two pages, which overlap', SMALL, known(), part(38), 2],
  ['a record more', SMALL, known(), part(39), 3],
  ['a known list of cut pages', { ...LONG, reports: false }, known(), whole, 116],
  ['a known list of larger pages', { ...LONG, sizing: 'rounded' }, known(), whole, 100],
  ['a known list of small pages', {}, smallPages, whole, 11],
  [
    'a known list without half of its records',
    SMALL,
    known({ do: 'remove', at: 100, count: 250 }),
    whole,
    20,
  ],
  ...KINDS.flatMap<[string, WorldOptions, Read, Read, number]>((kind) => [
    [
      `a known list with a new record, ${kind}`,
      { ...SMALL, kind },
      known(inserted(100)),
      whole,
      28,
    ],
    [`a connection in full pages, ${kind}`, { kind }, unknown, pages(50), 10],
    [`a connection of a known list, ${kind}`, { kind }, known(), pages(50), 10],
    [`a connection in smaller pages, ${kind}`, { kind }, unknown, pages(30), 17],
    [`smaller pages of a known list, ${kind}`, { kind }, known(), pages(30), 17],
  ]),
  ['a connection of a page', {}, unknown, window(50), 1],
  ['a connection of a page and a record', {}, unknown, window(51), 2],
  ['a connection without a number', {}, unknown, window(null), 1],
  ['records of two pages, by id', {}, known(), find(...FIFTY), 2],
  ['one record', {}, known(), find(100), 1],
  ['new records at both ends', {}, known(inserted(0), inserted(501)), find(500, 501), 2],
  ['a pushed record', { kind: 'position' }, known(inserted(0, 20)), find(140), 3],
  [
    'a record in front of which others were removed',
    { kind: 'position' },
    known({ do: 'remove', at: 0, count: 20 }),
    find(100),
    3,
  ],
  ['a record of a list that is not known', { kind: 'record' }, unknown, find(60), 3],
  ['a record behind one that was found', { kind: 'record' }, find(60), find(160), 5],
  ['a record found before a mutation', { kind: 'record' }, changed, find(60), 1],
  ['records that were found before', { kind: 'record' }, find(60, 160), find(60, 160), 2],
])('reading takes few requests: %s', async (_, { length = 500, ...traits }, before, read, most) => {
  const world = new World(length, { ...traits, concurrency: 4 });
  await before(world);
  expect(await world.costOf(() => read(world))).toBeLessThanOrEqual(most);
});
