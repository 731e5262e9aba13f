import type { ListReport } from '../schema/derivation/plan-adapters.ts';

/** What every list of the schema got, or why it got nothing: for people. */
export function explained(reports: readonly ListReport[]): string {
  if (reports.length === 0) return 'The schema has no lists.\n';
  return `${reports.map(explainedList).join('\n\n')}\n`;
}

/** The same for programs. */
export function explainedAsJson(reports: readonly ListReport[]): string {
  return `${JSON.stringify(reports, null, 2)}\n`;
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
