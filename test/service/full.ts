import { buildSchema } from 'graphql';
import { failure, pageOf, range, withResolvers, type PageArgs, type Resolvers } from './lists.ts';
import { made } from './made.ts';

/**
 * A schema that is richer than the documented one, as one pulled from the live service may be: Int ids, nullable items,
 * filters, enums, custom scalars, interfaces, unions, an input type with @oneOf, mutations, page limits that differ,
 * lists below records that can be found again by their id, at a path, or not at all, and filters with the names of the
 * gateway's own arguments.
 */
export const fullSdl = `
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

  type Robot { model: String! id: ID! }

  "No field finds one by its id, and no list has all of them."
  type Agency {
    id: ID!
    label: String!
    offices(first: Int, after: String): OfficePage!
  }
  type Office { id: ID! }

  union Applicant = Candidate | Robot
  union Contact = Candidate | Agency

  type Event { at: DateTime! text: String by: Named }

  type Company { id: ID! people(first: Int, after: String): CandidatePage! parent: Company }
  type Viewer { company: Company settings: Settings! }
  type Settings { events(first: Int, after: String): EventPage! }

  type CandidatePage { items: [Candidate]! pageInfo: PageInfo! total: Int! }
  type StrictCandidatePage { items: [Candidate!]! pageInfo: PageInfo! }
  type VacancyPage { items: [Vacancy]! pageInfo: PageInfo! }
  type OpeningPage { items: [Vacancy!]! pageInfo: PageInfo! }
  type ApplicantPage { items: [Applicant!] pageInfo: PageInfo }
  type ContactPage { items: [Contact] pageInfo: PageInfo! }
  type NamedPage { items: [Named]! pageInfo: PageInfo! }
  type EventPage { items: [Event!]! pageInfo: PageInfo! }
  type OfficePage { items: [Office!]! pageInfo: PageInfo! }
  type TagPage { items: [String!]! pageInfo: PageInfo! }
  type PageInfo { first: Int! hasNextPage: Boolean! endCursor: String }

  input CandidateFilter {
    stage: [Stage!]
    nameLike: String
    appliedAfter: DateTime
    nested: CandidateFilter
    minScore: Float = 0
  }
  input VacancyBy @oneOf { id: Int title: String }

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
  type Subscription { hired: Candidate }
`;

/**
 * An imitation of the recruiting service with the schema `fullSdl`; `sent` counts the mutations.
 *
 * @param moreSdl what its schema also has
 */
export function fullService(moreSdl = '', moreResolvers: Resolvers = {}) {
  const sent = { renames: 0 };
  const names = new Map<number, string>();
  const schema = made(buildSchema(fullSdl + moreSdl), {
    counts: COUNTS,
    limits: LIMITS,
    nested: NESTED,
  });
  withResolvers(schema, {
    Query: {
      me: () => candidate(1),
      viewer: () => ({}),
      failing: () => {
        throw failure('This field always fails.', { code: 'ALWAYS', hint: { deep: [1] } });
      },
    },
    Candidate: {
      name: ({ id }: FullRecord) => names.get(id) ?? (id % 5 === 0 ? null : `Candidate ${id}`),
      score: ({ id }: FullRecord) => {
        if (id % 7 === 0) throw failure(`No score for ${id}.`, { code: 'NO_SCORE' });
        return id / 4;
      },
      rank: ({ id }: FullRecord) => {
        if (id % 11 === 0) throw failure(`No rank for ${id}.`);
        return id * 3;
      },
    },
    Vacancy: {
      fragile: ({ id }: FullRecord, args: PageArgs) => {
        if (id % 3 === 0) throw failure(`No events for ${id}.`, { code: 'FRAGILE' });
        const events = range(id).map((event) => ({ __typename: 'Event', id: event }));
        return pageOf(events, args, 2);
      },
    },
    Mutation: {
      rename: (_: unknown, { id, name }: { id: number; name: string }) => {
        sent.renames += 1;
        names.set(id, name);
        return candidate(id);
      },
      hire: (_: unknown, { candidate: id }: { candidate: number }) => candidate(id),
    },
  });
  withResolvers(schema, moreResolvers);
  return { schema, sent };
}

/** A vacancy may have the id of a candidate, as in a service that counts each kind of record by itself. */
interface FullRecord {
  readonly id: number;
}

const candidate = (id: number) => ({ __typename: 'Candidate', id });

/** Of lists of the root. */
const COUNTS = { candidates: 97, activeCandidates: 97, vacancies: 8, openings: 23, named: 45 };
/** The page limits of lists of the root. */
const LIMITS = {
  candidates: 30,
  activeCandidates: 100,
  vacancies: 5,
  openings: 7,
  applicants: 20,
  named: 10,
};
const NESTED = { counts: [0, 5, 32], limit: 3 };
