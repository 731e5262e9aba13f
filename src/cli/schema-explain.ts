import type { EntityReport } from '../schema/derivation/plan-entities.ts';
import type { ListReport } from '../schema/derivation/plan-adapters.ts';

type Report = ListReport | EntityReport;

/**
 * Writes for people what was derived from each list and each type with an id, and why. If many lists are not paged, or
 * many types cannot be found by their id, these are only counted.
 *
 * @param all lists each of them
 */
export function explained(reports: readonly Report[], { all = false } = {}): string {
  if (reports.length === 0) return 'The schema has no lists and no types with an id.\n';
  const groups = [
    ['lists are not paged, so nothing is derived from them', reports.filter(isPlainList)],
    ['types cannot be found by their id', reports.filter(isNotFound)],
  ] as const;
  const counted = groups.filter(([, group]) => !all && group.length > FEW);
  const left = reports.filter((report) => !counted.some(([, group]) => group.includes(report)));
  const end = [
    ...counted.map(([what, group]) => `${group.length} ${what}: ${someOf(group)}.`),
    ...(counted.length > 0 ? [FOR_ALL] : []),
    ...(reports.some((report) => 'list' in report && report.inPages) ? [] : [NO_PAGES]),
  ];
  return [...left.map(explainedReport), ...(end.length > 0 ? [end.join('\n')] : [])]
    .map((text) => `${text}\n`)
    .join('\n');
}

/** Up to this number they are listed. */
const FEW = 5;
const FOR_ALL =
  '`schema explain --all` lists all of them with the reasons; `--json` is for programs.';
const NO_PAGES =
  'No list is paged, so nothing is derived from any list. A paged list is a field with the arguments first: Int and ' +
  'after: String that returns an object with items, and with a pageInfo that has hasNextPage and endCursor.';

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
    ['entity', foundBy === null ? 'cannot be found by its id' : `found by ${foundBy}`],
    ...(field ? [['field', field]] : []),
    ...why.map((reason) => ['why', reason]),
  ];
  return paragraph(type, facts);
}

function explainedList({ list, all, connection, types, parent, renamed, why }: ListReport): string {
  const isDerived = all !== null || connection !== null;
  const facts = [
    ...(all ? [['all', all]] : []),
    ...(types ? [['connection', `${connection} (${types.connection}, ${types.edge})`]] : []),
    ...(parent ? [['parent', `reached again by ${parent}`]] : []),
    ...Object.entries(renamed).map(([place, name]) => [
      'renamed',
      `${place} is called ${name}, because the service has a filter of that name`,
    ]),
    ...why.map((reason) => [isDerived ? 'why' : 'omitted', reason]),
  ];
  return paragraph(list, facts);
}

function paragraph(title: string, facts: readonly (readonly string[])[]): string {
  return [title, ...facts.map(([what, fact]) => `  ${what!.padEnd(11)} ${fact}`)].join('\n');
}
