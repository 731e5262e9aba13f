/** A person's answer to a vacancy. It has no id: the person and the step of the workflow name it. */
export interface MadeUpResponse {
  /** Grows with each response, and is its sort key. */
  readonly number: number;
  /** The number of the person's record. */
  readonly person: number;
  readonly vacancy: number;
  readonly step: number;
}

export const WORKFLOW = ['Received', 'Invited', 'Rejected'];

/** The first persons have answered to two vacancies each, in two steps of the workflow. A third is for one vacancy. */
export function madeUpResponses(allPersons: number, vacancies: number): MadeUpResponse[] {
  const persons = Math.min(allPersons, 1_000);
  return Array.from({ length: 2 * persons }, (_, index) => ({
    number: index + 1,
    person: index % persons,
    vacancy: index % 3 === 0 ? 1 : 1 + ((index * 11) % vacancies),
    step: (Math.floor(index / persons) + (index % persons)) % WORKFLOW.length,
  }));
}
