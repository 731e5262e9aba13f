import { buildSchema, GraphQLError, type GraphQLSchema } from 'graphql';
import {
  pageOf,
  type CursorBehaviour,
  type Page,
  type PageArguments,
} from '../../sandbox/cursors.ts';
import type { PersonList } from '../../sandbox/person-list.ts';
import { personsSdl } from '../../sandbox/persons-schema.ts';
import { resolveWith } from './resolve-with.ts';
import {
  madeUpApplications,
  madeUpVacancies,
  numberedList,
  type Candidate,
  type Comment,
  type Vacancy,
} from './vacancies.ts';

/** The published persons, and invented lists: filters, lists below records, enums, mutations. */
export function richSchema(persons: PersonList, behaviour: CursorBehaviour): GraphQLSchema {
  const schema = buildSchema(personsSdl + sdl);
  const people = persons.all();
  const vacancies = madeUpVacancies();
  const { candidates, comments } = madeUpApplications(vacancies, persons.length);

  resolveWith(schema.getQueryType(), {
    persons: (args: PageArguments) => pageOf(persons, args, behaviour),
    vacancies: ({ status, titleContains, ...args }: VacancyArguments) =>
      page(vacancies, args, vacancyOf, (vacancy) => {
        const isTitled = vacancy.title.toLowerCase().includes((titleContains ?? '').toLowerCase());
        return isTitled && (status == null || vacancy.status === status);
      }),
    vacancy: ({ id }: { id: string }) => optional(byId(vacancies, id), vacancyOf),
    candidates: (args: CandidateArguments) => candidatesPage(args, () => true),
  });
  resolveWith(schema.getMutationType(), {
    createCandidate: ({ input }: { input: NewCandidate }) => {
      const vacancy = required(byId(vacancies, input.vacancyId), 'vacancy', input.vacancyId);
      const person = people.findIndex(({ id }) => id === input.personId);
      if (person < 0) throw missing('person', input.personId);
      const candidate = {
        number: candidates.length + 1,
        vacancy: vacancy.number,
        person,
        stage: input.stage,
      };
      candidates.push(candidate);
      return candidateOf(candidate);
    },
    moveCandidate: ({ id, stage }: { id: string; stage: Candidate['stage'] }) => {
      const candidate = required(byId(candidates, id), 'candidate', id);
      candidate.stage = stage;
      return candidateOf(candidate);
    },
    addComment: ({ candidateId, text }: { candidateId: string; text: string }) => {
      const { number } = required(byId(candidates, candidateId), 'candidate', candidateId);
      const comment = { number: comments.length + 1, candidate: number, text };
      comments.push(comment);
      return commentOf(comment);
    },
  });
  return schema;

  function vacancyOf({ number, ...fields }: Vacancy): object {
    return {
      ...fields,
      id: String(number),
      candidates: (args: CandidateArguments) =>
        candidatesPage(args, ({ vacancy }) => vacancy === number),
    };
  }

  function candidateOf({ number, vacancy, person, stage }: Candidate): object {
    return {
      id: String(number),
      stage,
      person: people[person],
      vacancy: () => optional(byId(vacancies, vacancy), vacancyOf),
      comments: (args: PageArguments) =>
        page(comments, args, commentOf, ({ candidate }) => candidate === number, COMMENTS_LIMIT),
    };
  }

  function candidatesPage(
    { stage, ...args }: CandidateArguments,
    isWanted: (candidate: Candidate) => boolean,
  ): Page<object> {
    return page(
      candidates,
      args,
      candidateOf,
      (each) => (stage == null || each.stage === stage) && isWanted(each),
    );
  }

  function page<T extends { readonly number: number }>(
    records: readonly T[],
    args: PageArguments,
    shown: (record: T) => object,
    isWanted: (record: T) => boolean,
    limit?: number,
  ): Page<object> {
    const { items, pageInfo } = pageOf(
      numberedList(records.filter(isWanted)),
      args,
      behaviour,
      limit,
    );
    return { items: items.map(shown), pageInfo };
  }
}

/** Not that of the other lists: the interface says that some differ. */
const COMMENTS_LIMIT = 20;

interface VacancyArguments extends PageArguments {
  status?: Vacancy['status'] | null;
  titleContains?: string | null;
}

interface CandidateArguments extends PageArguments {
  stage?: Candidate['stage'] | null;
}

interface NewCandidate {
  vacancyId: string;
  personId: string;
  stage: Candidate['stage'];
}

function commentOf({ number, text }: Comment): object {
  return { id: String(number), text };
}

function byId<T extends { readonly number: number }>(
  records: readonly T[],
  id: string | number,
): T | undefined {
  return records.find(({ number }) => String(number) === String(id));
}

function optional<T>(record: T | undefined, shown: (record: T) => object): object | null {
  return record ? shown(record) : null;
}

function required<T>(record: T | undefined, kind: string, id: string): T {
  if (record === undefined) throw missing(kind, id);
  return record;
}

function missing(kind: string, id: string): GraphQLError {
  return new GraphQLError(`There is no ${kind} with the id ${JSON.stringify(id)}.`);
}

const sdl = /* GraphQL */ `
  extend type Query {
    "The vacancies, the oldest first."
    vacancies(
      "From 1 to 50. More than 50 counts as 50, and so does leaving it out."
      first: Int
      "The endCursor of the page before."
      after: String
      "Only vacancies with this status."
      status: VacancyStatus
      "Only vacancies with this text in their title."
      titleContains: String
    ): VacancyPage!
    "The vacancy with this id; null if there is none."
    vacancy(id: ID!): Vacancy
    "The candidates of all vacancies."
    candidates(
      first: Int
      after: String
      "Only candidates in this stage."
      stage: Stage
    ): CandidatePage!
  }

  type Mutation {
    "Lets a person apply for a vacancy."
    createCandidate(input: NewCandidate!): Candidate!
    "Moves a candidate to another stage."
    moveCandidate(id: ID!, stage: Stage!): Candidate!
    "Adds a comment to a candidate."
    addComment(candidateId: ID!, text: String!): Comment!
  }

  input NewCandidate {
    vacancyId: ID!
    personId: ID!
    stage: Stage! = NEW
  }

  type Vacancy {
    id: ID!
    title: String!
    department: String
    status: VacancyStatus!
    openedOn: Date
    "The candidates of this vacancy."
    candidates(
      first: Int
      after: String
      "Only candidates in this stage."
      stage: Stage
    ): CandidatePage!
  }

  enum VacancyStatus {
    OPEN
    ON_HOLD
    CLOSED
  }

  "A day, as ISO 8601 writes it."
  scalar Date @specifiedBy(url: "https://www.iso.org/iso-8601-date-and-time-format.html")

  "A person who has applied for a vacancy."
  type Candidate {
    id: ID!
    stage: Stage!
    person: Person!
    vacancy: Vacancy
    "At most 20 on a page."
    comments(first: Int, after: String): CommentPage!
  }

  enum Stage {
    NEW
    INTERVIEW
    OFFER
    HIRED
    REJECTED
  }

  type Comment {
    id: ID!
    text: String!
  }

  type VacancyPage {
    items: [Vacancy!]!
    pageInfo: PageInfo!
  }

  type CandidatePage {
    items: [Candidate!]!
    pageInfo: PageInfo!
  }

  type CommentPage {
    items: [Comment!]!
    pageInfo: PageInfo!
  }
`;
