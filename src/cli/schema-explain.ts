import type { EntityReport } from '../schema/derivation/plan-entities.ts';
import type { ListReport } from '../schema/derivation/plan-adapters.ts';

type Report = ListReport | EntityReport;

/**
 * What the lists of the schema got, and the types with an id, or why they got nothing: for people. Lists that
 * are not in pages, and types that are not found again, are only counted where they are many.
 *
 * @param all shows each of them
 */
export function explained(reports: readonly Report[], { all = false } = {}): string {
  if (reports.length === 0) return 'The schema has no lists, and no types with an id.\n';
  const groups = [
    ['lists are not in pages and get nothing', reports.filter(isPlainList)],
    ['types are not found again by their id', reports.filter(isNotFound)],
  ] as const;
  const counted = groups.filter(([, group]) => !all && group.length > FEW);
  const left = reports.filter((report) => !counted.some(([, group]) => group.includes(report)));
  const end = [
    ...counted.map(([what, group]) => `${group.length} ${what}: ${someOf(group)}.`),
    ...(counted.length > 0 ? [FOR_ALL] : []),
    ...(reports.some((report) => 'list' in report && report.inPages) ? [] : [NO_PAGES]),
  ];
  return [...left.map(explainedReport), ...(end.length > 0 ? [end.join('\n')] : [])]
    .map((paragraph) => `${paragraph}\n`)
    .join('\n');
}

/** The same for programs. */
export function explainedAsJson(reports: readonly Report[]): string {
  return `${JSON.stringify(reports, null, 2)}\n`;
}

/** So many are shown all the same. */
const FEW = 5;
const FOR_ALL = 'Use `schema explain --all` for all of them and why, or `--json` for programs.';
const NO_PAGES =
  'No list is in pages, so that no list gets anything. One in pages is a field with the arguments first: Int and ' +
  'after: String that gives an object with items and a pageInfo that has hasNextPage and endCursor.';

function isPlainList(report: Report): boolean {
  return 'list' in report && !report.inPages;
}

function isNotFound(report: Report): boolean {
  return 'type' in report && report.foundBy === null;
}

function someOf(group: readonly Report[]): string {
  const names = group.map((report) => ('list' in report ? report.list : report.type));
  return [...names.slice(0, 3), `and ${names.length - 3} more`].join(', ');
}

function explainedReport(report: Report): string {
  return 'list' in report ? explainedList(report) : explainedEntity(report);
}

function explainedEntity({ type, foundBy, field, why }: EntityReport): string {
  const facts = [
    ['entity', foundBy === null ? 'not found again by its id' : `found by ${foundBy}`],
    ...(field ? [['field', field]] : []),
    ...why.map((reason) => ['why', reason]),
  ];
  return [type, ...facts.map(([what, fact]) => `  ${what!.padEnd(11)} ${fact}`)].join('\n');
}

function explainedList({ list, all, connection, types, parent, renamed, why }: ListReport): string {
  const isDerived = all !== null || connection !== null;
  const facts = [
    ...(all ? [['all', all]] : []),
    ...(types ? [['connection', `${connection} (${types.connection}, ${types.edge})`]] : []),
    ...(parent ? [['parent', `reached again by ${parent}`]] : []),
    ...Object.entries(renamed).map(([place, name]) => [
      'renamed',
      `${place} is called ${name}, since the service has a filter of that name`,
    ]),
    ...why.map((reason) => [isDerived ? 'why' : 'nothing', reason]),
  ];
  return [list, ...facts.map(([what, fact]) => `  ${what!.padEnd(11)} ${fact}`)].join('\n');
}
