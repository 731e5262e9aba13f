import type { EntityReport } from '../schema/derivation/entity.ts';
import type { ListReport } from '../schema/derivation/plan-adapters.ts';

/** What every list of the schema got, and every type with an id, or why it got nothing: for people. */
export function explained(reports: readonly (ListReport | EntityReport)[]): string {
  if (reports.length === 0) return 'The schema has no lists, and no types with an id.\n';
  return `${reports.map(explainedReport).join('\n\n')}\n`;
}

/** The same for programs. */
export function explainedAsJson(reports: readonly (ListReport | EntityReport)[]): string {
  return `${JSON.stringify(reports, null, 2)}\n`;
}

function explainedReport(report: ListReport | EntityReport): string {
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

function explainedList({ list, all, connection, parent, renamed, why }: ListReport): string {
  const isDerived = all !== null || connection !== null;
  const facts = [
    ...(all ? [['all', all]] : []),
    ...(connection ? [['connection', connection]] : []),
    ...(parent ? [['parent', `reached again by ${parent}`]] : []),
    ...Object.entries(renamed).map(([place, name]) => [
      'renamed',
      `${place} is called ${name}, since the service has a filter of that name`,
    ]),
    ...why.map((reason) => [isDerived ? 'why' : 'nothing', reason]),
  ];
  return [list, ...facts.map(([what, fact]) => `  ${what!.padEnd(11)} ${fact}`)].join('\n');
}
