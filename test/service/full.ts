import {
  failure,
  makeExecutableSchema,
  pageOf,
  range,
  type PageArgs,
  type Resolvers,
} from './lists.ts';

/**
 * A schema that is richer than the documented one, as one pulled from the live service may be: Int ids, nullable items,
 * filters, enums, custom scalars, interfaces, unions, an input type with @oneOf, mutations, page limits that differ,
 * lists below records that can be found again by their id, at a path, or not at all, and filters with the names of the
 * gateway's own arguments.
 */
export const fullSdl = /* GraphQL */ `
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
    title(upper: Boolean = false): String!
    open: Boolean!
    candidates(first: Int, after: String, minId: Int = 0): CandidatePage!
    contacts(first: Int!, after: String): ContactPage
    related(first: Int, after: String, last: Boolean, before: Int, limit: Int): NamedPage!
    "Fails for every third vacancy."
    fragile(first: Int, after: String): EventPage!
    lead: Candidate
  }

  type Robot {
    model: String!
    id: ID!
  }

  "No field finds one by its id, and no list has all of them."
  type Agency {
    id: ID!
    label: String!
    offices(first: Int, after: String): OfficePage!
  }
  type Office {
    id: ID!
  }

  union Applicant = Candidate | Robot
  union Contact = Candidate | Agency

  type Event {
    at: DateTime!
    text: String
    by: Named
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
    total: Int!
  }
  type StrictCandidatePage {
    items: [Candidate!]!
    pageInfo: PageInfo!
  }
  type VacancyPage {
    items: [Vacancy]!
    pageInfo: PageInfo!
  }
  type OpeningPage {
    items: [Vacancy!]!
    pageInfo: PageInfo!
  }
  type ApplicantPage {
    items: [Applicant!]
    pageInfo: PageInfo
  }
  type ContactPage {
    items: [Contact]
    pageInfo: PageInfo!
  }
  type NamedPage {
    items: [Named]!
    pageInfo: PageInfo!
  }
  type EventPage {
    items: [Event!]!
    pageInfo: PageInfo!
  }
  type OfficePage {
    items: [Office!]!
    pageInfo: PageInfo!
  }
  type TagPage {
    items: [String!]!
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
    vacancies(first: Int, after: String): VacancyPage!
    openings(first: Int!, after: String, open: Boolean): OpeningPage
    applicants(first: Int, after: ID): ApplicantPage
    named(first: Int, after: String): NamedPage!
    events(first: Int, after: String, candidate: Int!): EventPage
    candidate(id: Int!): Candidate
    vacancy(id: Int!): Vacancy
    theVacancy(id: Int!): Vacancy
    vacancyBy(by: VacancyBy!): Vacancy
    agencyCalled(label: String!): Agency
    "A name that would be derived, used by the upstream itself."
    allOpenings: [String!]
    "Looks paged, and is not: no cursor."
    tags(first: Int): TagPage
    failing: String
    me: Named
    viewer: Viewer
  }

  type Mutation {
    rename(id: Int!, name: String!): Candidate
    hire(candidate: Int!, vacancy: Int!): Applicant
    open(id: Int!): Vacancy
  }
  type Subscription {
    hired: Candidate
  }
`;

interface FullRecord {
  readonly __typename: string;
  readonly id: number | string;
}

/**
 * An imitation of the recruiting service with the schema `fullSdl`, over new data; `sent` counts the mutations.
 *
 * @param moreSdl what its schema also has
 */
export function fullService(moreSdl = '', moreResolvers: Resolvers = {}) {
  const records = newRecords();
  const sent = { renames: 0 };
  const [lists, fields] = [listsOf(records), fieldsOf(records)];
  const resolvers: Resolvers = { ...lists, ...fields, Mutation: mutationsOf(records, sent) };
  for (const [type, ofType] of [...Object.entries(lists), ...Object.entries(moreResolvers)])
    resolvers[type] = { ...resolvers[type], ...ofType };
  const schema = makeExecutableSchema(fullSdl + moreSdl, resolvers);
  return { schema, sent, records };
}

const STAGES = ['NEW', 'INTERVIEW', 'OFFER', 'TRIAL'];

type Records = ReturnType<typeof newRecords>;
type Candidate = ReturnType<typeof newCandidate>;
/** A vacancy may have the id of a candidate, as in a service that counts each kind of record by itself. */
function newRecords() {
  return {
    candidates: range(97).map(newCandidate),
    vacancies: range(23).map((id) => ({
      __typename: 'Vacancy',
      id,
      name: `Vacancy ${id}`,
      open: id % 2 === 0,
    })),
    robots: range(9).map((id) => ({ __typename: 'Robot', id: `r${id}`, model: `Model ${id}` })),
    agencies: range(5).map((id) => ({ __typename: 'Agency', id: `a${id}`, label: `Agency ${id}` })),
  };
}

function newCandidate(id: number) {
  return {
    __typename: 'Candidate',
    id,
    name: id % 5 === 0 ? null : `Candidate ${id}`,
    stage: STAGES[id % STAGES.length]!,
    appliedAt: `2026-01-${String((id % 28) + 1).padStart(2, '0')}T09:00:00Z`,
    extra: id % 3 === 0 ? null : { tags: ['a', id], deep: { truth: id % 2 === 0 } },
  };
}

function listsOf({ candidates, vacancies, robots, agencies }: Records) {
  const [someCandidates, someVacancies] = [candidates.slice(0, 37), vacancies.slice(0, 8)];
  const applicants = candidates.flatMap((candidate, index) =>
    index % 10 === 9 ? [candidate, robots[(index - 9) / 10]!] : [candidate],
  );
  const events = (count: number, of: number | string) =>
    range(count).map((number) => ({
      at: `2026-02-${String(number).padStart(2, '0')}T10:00:00Z`,
      text: number % 3 === 0 ? null : `Event ${number} of ${of}`,
      by: number % 2 === 0 ? candidates[number] : vacancies[number],
    }));

  return {
    Query: {
      candidates: list(30, (_, { filter, limit }: CandidateArgs) =>
        candidates
          .filter(({ stage }) => filter?.stage?.includes(stage) ?? true)
          .slice(0, limit ?? undefined)
          .map((candidate) => (candidate.id % 13 === 0 ? null : candidate)),
      ),
      activeCandidates: list(100, () => candidates),
      vacancies: list(5, () => someVacancies),
      openings: list(7, (_, { open }: { open?: boolean | null }) =>
        vacancies.filter((vacancy) => vacancy.open === (open ?? vacancy.open)),
      ),
      applicants: list(20, () => applicants),
      named: list(10, () => [...someVacancies, ...someCandidates]),
      events: list(5, (_, { candidate }: { candidate: number }) =>
        candidate > candidates.length ? null : events(candidate % 12, candidate),
      ),
    },
    Vacancy: {
      candidates: list(3, ({ id }: Vacant, { minId }: { minId?: number | null }) =>
        someCandidates
          .filter((candidate) => (candidate.id + 3) % 8 < id % 8 && candidate.id >= (minId ?? 0))
          .map((candidate) => (candidate.id % 9 === 0 ? null : candidate)),
      ),
      contacts: list(4, ({ id }: Vacant) =>
        id % 4 === 0 ? [] : [...agencies, ...candidates.slice(0, id)],
      ),
      related: list(6, ({ id }: Vacant, { limit }: { limit?: number | null }) =>
        [...candidates.slice(0, 7), ...someVacancies].slice(0, limit ?? id * 2),
      ),
      fragile: list(2, ({ id }: Vacant) => {
        if (id % 3 === 0) throw failure(`No events for ${id}.`, { code: 'FRAGILE' });
        return events(id, id);
      }),
    },
    Candidate: { history: list(5, ({ id }: Candidate) => events(id % 12, id)) },
    Agency: { offices: list(2, () => [{ id: 'o1' }]) },
    // The other company is not the one at the path, so only one page of its list is available, as short as requested.
    Company: { people: list(3, ({ id }: FullRecord) => candidates.slice(0, id === 'c1' ? 8 : 1)) },
    Settings: { events: list(2, () => events(7, 'settings')) },
  };
}

function fieldsOf({ candidates, vacancies, agencies }: Records) {
  return {
    Query: {
      candidate: byId(candidates),
      vacancy: byId(vacancies),
      theVacancy: byId(vacancies),
      vacancyBy: (_: unknown, { by }: { by: { id?: number; title?: string } }) =>
        vacancies.find((vacancy) => vacancy.id === by.id || titleOf(vacancy) === by.title) ?? null,
      agencyCalled: (_: unknown, { label }: { label: string }) =>
        agencies.find((agency) => agency.label === label) ?? null,
      allOpenings: () => vacancies.map((vacancy) => titleOf(vacancy)),
      tags: () => ({ items: ['x', 'y'], pageInfo: { first: 2, hasNextPage: false } }),
      failing: () => {
        throw failure('This field always fails.', { code: 'ALWAYS', hint: { deep: [1] } });
      },
      me: () => candidates[0],
      viewer: () => ({}),
    },
    Candidate: {
      name: nameOf,
      score: ({ id }: Candidate) => {
        if (id % 7 === 0) throw failure(`No score for ${id}.`, { code: 'NO_SCORE' });
        return id / 4;
      },
      rank: ({ id }: Candidate) => {
        if (id % 11 === 0) throw failure(`No rank for ${id}.`);
        return id * 3;
      },
      vacancy: ({ id }: Candidate) => (id % 4 === 0 ? null : vacancies[id % vacancies.length]),
      friends: ({ id }: Candidate, { limit }: { limit: number | null }) =>
        range(Math.max(0, Math.min(limit ?? 2, 4))).map((place) =>
          place === 2 ? null : candidates[(id + place - 1) % candidates.length],
        ),
    },
    Vacancy: {
      name: nameOf,
      title: titleOf,
      lead: ({ id }: Vacant) => candidates[id * 2] ?? null,
    },
    Company: { parent: ({ id }: FullRecord) => (id === 'c1' ? company('c2') : null) },
    Viewer: { company: () => company('c1'), settings: () => ({}) },
  };
}

function nameOf({ name }: { name: string | null }, { upper }: Upper) {
  return upper ? (name?.toUpperCase() ?? null) : name;
}

function titleOf({ id }: Vacant, { upper }: Upper = {}) {
  return upper ? `TITLE ${id}` : `Title ${id}`;
}

function mutationsOf({ candidates, vacancies }: Records, sent: { renames: number }) {
  return {
    rename: (_: unknown, { id, name }: { id: number; name: string }) => {
      sent.renames += 1;
      const renamed = candidates.find((candidate) => candidate.id === id);
      if (renamed) renamed.name = name;
      return renamed ?? null;
    },
    hire: (_: unknown, { candidate: id }: { candidate: number }) =>
      candidates.find((candidate) => candidate.id === id) ?? null,
    open: byId(vacancies),
  };
}

interface Upper {
  upper?: boolean | null;
}

interface Vacant {
  readonly id: number;
}

interface CandidateArgs {
  filter?: { stage?: string[] | null } | null;
  limit?: number | null;
}

/** Resolves a list with its pages. */
function list<Parent, Args>(
  limit: number,
  recordsOf: (parent: Parent, args: Args) => readonly unknown[] | null,
) {
  return (parent: Parent, args: Args & PageArgs) => {
    const all = recordsOf(parent, args);
    return all && pageOf(all, args, limit);
  };
}

function byId(records: readonly FullRecord[]) {
  return (_: unknown, { id }: { id: number }) => records.find((record) => record.id === id) ?? null;
}

function company(id: string) {
  return { __typename: 'Company', id };
}
