import type { GeneratorValue } from 'fast-check';
import fc from 'fast-check';
import { failure, makeExecutableSchema, pageOf, type PageArgs } from './executable-schema.ts';

/**
 * An upstream whose lists are fields of other objects: of parents that can be found by their id, at a path, or not at
 * all; lists of objects, unions and interfaces; filters whose names the gateway uses for its own arguments.
 */
export const nestedSdl = /* GraphQL */ `
  interface Named {
    id: Int!
    name: String
  }
  type Vacancy implements Named {
    id: Int!
    name: String
    title(upper: Boolean = false): String!
    candidates(first: Int, after: String, minScore: Int = 0): CandidatePage!
    applicants(first: Int!, after: String): ApplicantPage
    related(first: Int, after: String, last: Boolean, before: Int, limit: Int): NamedPage!
    "Fails for every third vacancy."
    fragile(first: Int, after: String): StrictEventPage!
    lead: Candidate
  }
  type Candidate implements Named {
    id: Int!
    name: String
    "Fails for every fifth candidate."
    score: Int
    "Never null, and fails for every seventh candidate."
    rank: Int!
    vacancy: Vacancy
    history(first: Int, after: String): EventPage!
  }
  type Robot {
    id: ID!
    model: String!
    parts(first: Int, after: String): PartPage!
  }
  union Applicant = Candidate | Robot
  type Event {
    text: String
    by: Named
  }
  type Part {
    id: ID!
  }
  type Company {
    id: ID!
    people(first: Int, after: String): CandidatePage!
    parent: Company
  }
  type Viewer {
    company: Company
    settings: Settings!
  }
  type Settings {
    events(first: Int, after: String): EventPage!
  }
  type CandidatePage {
    items: [Candidate]!
    pageInfo: PageInfo!
  }
  type ApplicantPage {
    items: [Applicant]
    pageInfo: PageInfo!
  }
  type NamedPage {
    items: [Named]!
    pageInfo: PageInfo!
  }
  type EventPage {
    items: [Event]!
    pageInfo: PageInfo!
  }
  type StrictEventPage {
    items: [Event!]!
    pageInfo: PageInfo!
  }
  type PartPage {
    items: [Part!]!
    pageInfo: PageInfo!
  }
  type VacancyPage {
    items: [Vacancy]!
    pageInfo: PageInfo!
  }
  type PageInfo {
    hasNextPage: Boolean!
    endCursor: String
  }
  type Query {
    vacancies(first: Int, after: String): VacancyPage!
    named(first: Int, after: String): NamedPage!
    vacancy(id: Int!): Vacancy
    theVacancy(id: Int!): Vacancy
    candidate(id: Int!): Candidate
    robotCalled(model: String!): Robot
    viewer: Viewer
  }
  type Mutation {
    open(id: Int!): Vacancy
  }
`;

const VACANCIES = 8;
const CANDIDATES = 37;
export const LIMITS = { vacancies: 5, candidates: 3, applicants: 4, related: 6, events: 2 };

export interface NestedRecord {
  readonly __typename: string;
  readonly id: number | string;
}

const vacancies = range(VACANCIES).map((id) => ({
  __typename: 'Vacancy',
  id,
  name: `Vacancy ${id}`,
}));
const candidates = range(CANDIDATES).map((id) => ({
  __typename: 'Candidate',
  id: 100 + id,
  name: id % 4 === 0 ? null : `Candidate ${id}`,
}));
const robots = range(5).map((id) => ({ __typename: 'Robot', id: `r${id}`, model: `Model ${id}` }));

/** The whole lists, without pages. */
export const whole = {
  vacancies: () => vacancies,
  named: () => [...vacancies, ...candidates],
  candidates: ({ id }: NestedRecord, { minScore }: { minScore?: number | null } = {}) =>
    candidates
      .filter((one) => one.id % VACANCIES < Number(id) % VACANCIES)
      .filter((one) => one.id >= (minScore ?? 0))
      .map((one) => (one.id % 9 === 0 ? null : one)),
  applicants: ({ id }: NestedRecord) =>
    Number(id) % 4 === 0 ? [] : [...robots, ...candidates.slice(0, Number(id))],
  related: ({ id }: NestedRecord, { limit }: { limit?: number | null } = {}) =>
    [...candidates.slice(0, 7), ...vacancies].slice(0, limit ?? Number(id) * 2),
  fragile: ({ id }: NestedRecord) => {
    if (Number(id) % 3 === 0) throw failure(`No events for ${id}.`, { code: 'FRAGILE' });
    return events(Number(id));
  },
  history: ({ id }: NestedRecord) => events(Number(id) % 6),
  // The other company is not the one at the path, so only one page of its list is available, as short as requested.
  people: ({ id }: NestedRecord) => candidates.slice(0, id === 'c1' ? 8 : 1),
  settings: () => events(7),
};

function events(count: number) {
  return range(count).map((number) => ({
    __typename: 'Event',
    text: `Event ${number}`,
    by: number % 2 === 0 ? candidates[number] : vacancies[number],
  }));
}

export const fieldsOfRecords = {
  Vacancy: {
    title: ({ id }: NestedRecord, { upper }: { upper?: boolean | null }) =>
      upper ? `TITLE ${id}` : `Title ${id}`,
    lead: ({ id }: NestedRecord) => candidates[Number(id) * 2] ?? null,
  },
  Candidate: {
    score: ({ id }: NestedRecord) => {
      if (Number(id) % 5 === 0) throw failure(`No score for ${id}.`, { code: 'NO_SCORE' });
      return Number(id) * 2;
    },
    rank: ({ id }: NestedRecord) => {
      if (Number(id) % 7 === 0) throw failure(`No rank for ${id}.`);
      return Number(id) * 3;
    },
    vacancy: ({ id }: NestedRecord) => vacancies[Number(id) % (VACANCIES + 2)] ?? null,
  },
  Company: { parent: ({ id }: NestedRecord) => (id === 'c1' ? company('c2') : null) },
  Viewer: { company: () => company('c1'), settings: () => ({}) },
};

function company(id: string) {
  return { __typename: 'Company', id };
}

export const rootFields = {
  vacancy: byId(vacancies),
  theVacancy: byId(vacancies),
  candidate: byId(candidates),
  robotCalled: (_: unknown, { model }: { model: string }) =>
    robots.find((one) => one.model === model) ?? null,
  viewer: () => ({}),
};

function byId(records: readonly NestedRecord[]) {
  return (_: unknown, { id }: { id: number }) => records.find((one) => one.id === id) ?? null;
}

/** The lists in pages, as the service returns them. */
export const pagedFields = {
  Query: {
    vacancies: pages(whole.vacancies, LIMITS.vacancies),
    named: pages(whole.named, 10),
  },
  Vacancy: {
    candidates: pages(whole.candidates, LIMITS.candidates),
    applicants: pages(whole.applicants, LIMITS.applicants),
    related: pages(whole.related, LIMITS.related),
    fragile: pages(whole.fragile, LIMITS.events),
  },
  Candidate: { history: pages(whole.history, LIMITS.events) },
  Robot: { parts: pages(() => [{ id: 'p1' }], 2) },
  Company: { people: pages(whole.people, LIMITS.candidates) },
  Settings: { events: pages(whole.settings, LIMITS.events) },
};

export function nestedUpstream() {
  return makeExecutableSchema(nestedSdl, {
    ...fieldsOfRecords,
    ...pagedFields,
    Query: { ...rootFields, ...pagedFields.Query },
    Mutation: { open: rootFields.vacancy },
    Vacancy: { ...fieldsOfRecords.Vacancy, ...pagedFields.Vacancy },
    Candidate: { ...fieldsOfRecords.Candidate, ...pagedFields.Candidate },
    Company: { ...fieldsOfRecords.Company, ...pagedFields.Company },
  });
}

function pages<Parent, Args>(
  list: (parent: Parent, args: Args) => readonly unknown[],
  limit: number,
) {
  return (parent: Parent, args: Args & PageArgs) => pageOf(list(parent, args), args, limit);
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}

/** Representations of entities, some of them invalid. */
const representations: unknown[] = [
  ...vacancies.slice(0, 4).map(({ id }) => ({ __typename: 'Vacancy', id })),
  ...candidates.slice(0, 7).map(({ id }) => ({ __typename: 'Candidate', id: String(id) })),
  { __typename: 'Vacancy', id: 600 },
  { __typename: 'Candidate', id: 1.5 },
  { __typename: 'Robot', id: 'r1' },
  { __typename: 'Nobody', id: 1 },
  { __typename: 'Vacancy' },
  { id: 1 },
  [1],
  'Vacancy',
];

/** A random value of one of the scalars above. */
export function nestedScalar(name: string, g: GeneratorValue): unknown {
  switch (name) {
    case 'Int':
      return g(fc.constantFrom, -1, 0, 1, 2, 3, 4, 5, 7, 104, 110, 600);
    case 'Boolean':
      return g(fc.boolean);
    case '_Any':
      return g(fc.constantFrom, ...representations);
    default:
      return g(fc.constantFrom, '1', 'Model 2', '', 'é"\\');
  }
}
