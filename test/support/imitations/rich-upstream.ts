import fc from 'fast-check';
import { failure, makeExecutableSchema, pageOf, type PageArgs } from './executable-schema.ts';

/**
 * An upstream that is richer than the documented one, as a schema pulled from the live service may be:
 * Int ids, nullable items, filter arguments, enums, custom scalars, interfaces, unions, nested lists,
 * mutations, an input type with @oneOf, and several pagers with limits of their own.
 */
export const richSdl = /* GraphQL */ `
  scalar DateTime @specifiedBy(url: "https://scalars.graphql.org/andimarek/date-time")
  scalar Json

  enum Stage {
    NEW
    INTERVIEW
    OFFER
    "No longer used."
    TRIAL @deprecated(reason: "Folded into INTERVIEW.")
  }

  interface Named {
    id: Int!
    name(upper: Boolean = false): String
  }

  type Candidate implements Named {
    id: Int!
    name(upper: Boolean = false): String
    stage: Stage!
    appliedAt: DateTime
    extra: Json
    "Fails for every seventh candidate."
    score: Float
    "Never null, and fails for every eleventh candidate."
    rank: Int!
    vacancy: Vacancy
    history(first: Int, after: String, stages: [Stage!]): EventPage!
    friends(limit: Int = 2): [Candidate]
  }

  type Vacancy implements Named {
    id: Int!
    name(upper: Boolean = false): String
    title: String!
    open: Boolean!
    candidates(first: Int, after: String): CandidatePage!
  }

  type Robot {
    model: String!
    id: ID!
  }

  union Applicant = Candidate | Robot

  type Event {
    at: DateTime!
    text: String
  }

  type CandidatePage {
    items: [Candidate]!
    pageInfo: PageInfo!
    total: Int!
  }
  type VacancyPage {
    items: [Vacancy!]!
    pageInfo: PageInfo!
  }
  type StrictCandidatePage {
    items: [Candidate!]!
    pageInfo: PageInfo!
  }
  type ApplicantPage {
    items: [Applicant!]
    pageInfo: PageInfo
  }
  type NamedPage {
    items: [Named!]!
    pageInfo: PageInfo!
  }
  type EventPage {
    items: [Event!]!
    pageInfo: PageInfo!
  }
  type PageInfo {
    first: Int!
    hasNextPage: Boolean!
    endCursor: String
  }

  input CandidateFilter {
    stage: [Stage!]
    nameLike: String
    appliedAfter: DateTime
    nested: CandidateFilter
    minScore: Float = 0
  }
  input VacancyBy @oneOf {
    id: Int
    title: String
  }

  type Query {
    "Candidates, thirty at a time."
    candidates(
      first: Int
      after: String
      "Only these."
      filter: CandidateFilter
      stage: Stage = NEW
      limit: Int
    ): CandidatePage!
    activeCandidates(first: Int, after: String): StrictCandidatePage!
    vacancies(first: Int!, after: String, open: Boolean): VacancyPage
    applicants(first: Int, after: ID): ApplicantPage
    named(first: Int, after: String): NamedPage!
    events(first: Int, after: String, candidate: Int!): EventPage
    candidate(id: Int!): Candidate
    vacancyBy(by: VacancyBy!): Vacancy
    "A name that would be derived, used by the upstream itself."
    allVacancies: [String!]
    "Looks paged, and is not: no cursor."
    tags(first: Int): TagPage
    failing: String
    me: Named
  }
  type TagPage {
    items: [String!]!
    pageInfo: PageInfo!
  }

  type Mutation {
    rename(id: Int!, name: String!): Candidate
    hire(candidate: Int!, vacancy: Int!): Applicant
  }
  type Subscription {
    hired: Candidate
  }
`;

const STAGES = ['NEW', 'INTERVIEW', 'OFFER', 'TRIAL'];
const CANDIDATES = 97;
const VACANCIES = 23;

interface Listed {
  __typename: string;
  id: number | string;
  name: string | null;
}

function candidate(number: number) {
  return {
    __typename: 'Candidate',
    id: number,
    name: number % 5 === 0 ? null : `Candidate ${number}`,
    stage: STAGES[number % STAGES.length]!,
    appliedAt: `2026-01-${String((number % 28) + 1).padStart(2, '0')}T09:00:00Z`,
    extra: number % 3 === 0 ? null : { tags: ['a', number], deep: { truth: number % 2 === 0 } },
  };
}

function vacancy(number: number) {
  return {
    __typename: 'Vacancy',
    id: 1000 + number,
    name: `Vacancy ${number}`,
    title: `Title ${number}`,
    open: number % 2 === 0,
  };
}

type Candidate = ReturnType<typeof candidate>;
type Vacancy = ReturnType<typeof vacancy>;

/** An executable schema over fresh data; `sent` counts what the mutations did. */
export function richUpstream() {
  const candidates = Array.from({ length: CANDIDATES }, (_, index) => candidate(index + 1));
  const vacancies = Array.from({ length: VACANCIES }, (_, index) => vacancy(index + 1));
  const robots = Array.from({ length: 9 }, (_, index) => ({
    __typename: 'Robot',
    id: `r${index}`,
    model: `Model ${index}`,
    name: null,
  }));
  const applicants: Listed[] = candidates.flatMap((one, index) =>
    index % 10 === 9 ? [one, robots[(index - 9) / 10]!] : [one],
  );
  const sent = { renames: 0 };
  const named = ({ name }: Listed, { upper }: { upper?: boolean | null }) =>
    upper ? (name?.toUpperCase() ?? null) : name;

  const schema = makeExecutableSchema(richSdl, {
    Query: {
      candidates: (_: unknown, { filter, stage: _stage, limit, ...page }: CandidateArgs) => {
        const found = candidates.filter(byStage(filter?.stage));
        const listed = limit === null || limit === undefined ? found : found.slice(0, limit);
        const whole = pageOf(listed, page, 30);
        // Some elements are null, as the type allows.
        return { ...whole, items: whole.items.map((one) => (one.id % 13 === 0 ? null : one)) };
      },
      activeCandidates: (_: unknown, page: PageArgs) => pageOf(candidates, page, 100),
      vacancies: (_: unknown, { open, ...page }: PageArgs & { open?: boolean | null }) =>
        pageOf(
          vacancies.filter((one) => open === null || open === undefined || one.open === open),
          page,
          7,
        ),
      applicants: (_: unknown, page: PageArgs) => pageOf(applicants, page, 20),
      named: (_: unknown, page: PageArgs) => pageOf([...vacancies, ...candidates], page, 50),
      events: (_: unknown, { candidate: id, ...page }: PageArgs & { candidate: number }) =>
        id > CANDIDATES ? null : pageOf(events(id), page, 5),
      candidate: (_: unknown, { id }: { id: number }) =>
        candidates.find((one) => one.id === id) ?? null,
      vacancyBy: (_: unknown, { by }: { by: { id?: number; title?: string } }) =>
        vacancies.find((one) => one.id === by.id || one.title === by.title) ?? null,
      allVacancies: () => vacancies.map(({ title }) => title),
      tags: () => ({ items: ['x', 'y'], pageInfo: { first: 2, hasNextPage: false } }),
      failing: () => {
        throw failure('This field always fails.', { code: 'ALWAYS', hint: { deep: [1] } });
      },
      me: () => candidates[0],
    },
    Mutation: {
      rename: (_: unknown, { id, name }: { id: number; name: string }) => {
        sent.renames += 1;
        const found = candidates.find((one) => one.id === id);
        if (found) found.name = name;
        return found ?? null;
      },
      hire: (_: unknown, { candidate: id }: { candidate: number }) =>
        candidates.find((one) => one.id === id) ?? null,
    },
    Candidate: {
      name: named,
      score: ({ id }: Candidate) => {
        if (id % 7 === 0) throw failure(`No score for ${id}.`, { code: 'NO_SCORE' });
        return id / 4;
      },
      rank: ({ id }: Candidate) => {
        if (id % 11 === 0) throw failure(`No rank for ${id}.`);
        return id * 3;
      },
      vacancy: ({ id }: Candidate) => (id % 4 === 0 ? null : vacancies[id % VACANCIES]),
      history: ({ id }: Candidate, { stages: _stages, ...page }: PageArgs & { stages?: unknown }) =>
        pageOf(events(id), page, 5),
      friends: ({ id }: Candidate, { limit }: { limit: number | null }) =>
        Array.from({ length: Math.max(0, Math.min(limit ?? 2, 4)) }, (_, index) =>
          index === 1 ? null : (candidates[(id + index) % CANDIDATES] ?? null),
        ),
    },
    Vacancy: {
      name: named,
      candidates: ({ id }: Vacancy, page: PageArgs) =>
        pageOf(
          candidates.filter((one) => one.id % VACANCIES === id - 1001),
          page,
          30,
        ),
    },
  });
  return { schema, sent, candidates, vacancies, applicants };
}

interface CandidateArgs extends PageArgs {
  filter?: { stage?: string[] | null } | null;
  stage?: string | null;
  limit?: number | null;
}

function byStage(stages: readonly string[] | null | undefined) {
  return (one: Candidate) => !stages || stages.includes(one.stage);
}

function events(id: number) {
  return Array.from({ length: id % 12 }, (_, index) => ({
    at: `2026-02-${String(index + 1).padStart(2, '0')}T10:00:00Z`,
    text: index % 2 === 0 ? `Event ${index} of ${id}` : null,
  }));
}

/** A random value of one of the scalars above. */
export function richScalar(name: string, g: fc.GeneratorValue): unknown {
  switch (name) {
    case 'Int':
      return g(fc.integer, { min: -1, max: 120 });
    case 'Float':
      return g(fc.integer, { min: -10, max: 10 });
    case 'Boolean':
      return g(fc.boolean);
    case 'DateTime':
      return '2026-01-05T00:00:00Z';
    case 'Json':
      return g(fc.constantFrom, 1, 'x', true);
    default:
      return g(fc.constantFrom, 'Title 3', '10', '', 'é"\\');
  }
}
