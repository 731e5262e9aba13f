import { buildSchema, type GraphQLSchema } from 'graphql';
import {
  pageOf,
  type CursorBehaviour,
  type Page,
  type PageArguments,
  type PagedList,
} from '../../sandbox/cursors.ts';
import { personOf, type PersonList } from '../../sandbox/person-list.ts';
import { resolveWith } from './resolve-with.ts';
import { madeUpVacancies, numberedList, sortedList, type Vacancy } from './vacancies.ts';

/** What the administrator of the tokens may see, as the service decides it for each request. */
export interface Rights {
  managers: boolean;
}

/**
 * Invented lists in the manner of services that return errors as data: a field returns a union of its record or page
 * and of an error type. Some lists have a total, records without an id, items of several types, or another name for
 * the cursor's argument.
 */
export function resultsSchema(
  persons: PersonList,
  behaviour: CursorBehaviour,
  rights: Readonly<Rights>,
): GraphQLSchema {
  const schema = buildSchema(sdl);
  const vacancies = madeUpVacancies();
  const responses = madeUpResponses(persons.length, vacancies.length);

  resolveWith(schema.getQueryType(), {
    persons: ({ query, ...args }: PageArguments & { query?: string | null }) =>
      query
        ? personsPage(args, (record) => isNamed(record, query))
        : page(recordsOf(persons), args, personItem),
    person: ({ id }: { id: number }) => {
      if (isOfAnother(id)) return failure('PersonError', 'FORBIDDEN', OF_ANOTHER);
      return isPerson(id - 1) ? personItem(id - 1) : missing('PersonError', 'person', id);
    },
    vacancies: ({ status, ...args }: PageArguments & { status?: Vacancy['status'] | null }) =>
      page(
        numberedList(vacancies.filter((each) => status == null || each.status === status)),
        args,
        vacancyItem,
      ),
    vacancy: ({ id }: { id: number }) => {
      const vacancy = vacancies.find(({ number }) => number === id);
      if (vacancy) return vacancyItem(vacancy);
      if (!isOfAnother(id)) return missing('VacancyError', 'vacancy', id);
      return { __typename: 'VacancyPublic', id, title: 'Gardener', url: urlOf('vacancies', id) };
    },
    managers: (args: PageArguments) =>
      rights.managers
        ? { __typename: 'Managers', ...page(numberedList(MANAGERS), args, managerItem) }
        : failure('ManagersError', 'FORBIDDEN', 'You may not see the managers.'),
    personSources: ({ first, afterCursor }: { first: number; afterCursor?: string | null }) =>
      page(
        numberedList(SOURCES),
        { first, after: afterCursor ?? null },
        personSource,
        SOURCES_LIMIT,
      ),
    responses: ({ vacancyId, ...args }: PageArguments & { vacancyId?: number | null }) =>
      page(
        numberedList(
          responses.filter(
            ({ person, vacancy }) =>
              (vacancyId == null || vacancy === vacancyId) && isPerson(person),
          ),
        ),
        args,
        responseItem,
      ),
  });
  return schema;

  function isPerson(record: number): boolean {
    return Number.isSafeInteger(record) && persons.positionOf(record) !== undefined;
  }

  function personsPage(args: PageArguments, isWanted: (record: number) => boolean): object {
    return page(positionsAmong(persons, isWanted), args, (position) =>
      personItem(persons.recordAt(position)),
    );
  }

  function personItem(record: number): object {
    return {
      __typename: 'PersonItem',
      id: record + 1,
      firstName: nameOf(record),
      lastName: LAST_NAMES[record % LAST_NAMES.length],
      source: personSource(SOURCES[record % SOURCES.length]!),
      history: (args: PageArguments) =>
        page(numberedList(historyOf(record)), args, ({ number, ...event }) => ({
          id: record * MAX_EVENTS + number,
          ...event,
        })),
    };
  }

  function vacancyItem({ number, title, department, status, openedOn }: Vacancy): object {
    return {
      __typename: 'VacancyItem',
      id: number,
      title,
      department,
      status,
      openedOn,
      persons: (args: PageArguments) => {
        const applied = new Set(
          responses.flatMap(({ person, vacancy }) => (vacancy === number ? [person] : [])),
        );
        return personsPage(args, (record) => applied.has(record));
      },
    };
  }

  function responseItem({ number, person, step }: MadeUpResponse): object {
    return {
      rating: number % 4 === 0 ? null : (number * 3) % 5,
      url: urlOf('responses', number),
      person: personItem(person),
      workflowStatus: workflowStatus(step),
    };
  }

  function page<T>(
    list: PagedList<T>,
    args: PageArguments,
    shown: (record: T) => object,
    limit?: number,
  ): Page<object> & { count: number } {
    const { items, pageInfo } = pageOf(list, args, behaviour, limit);
    return { items: items.map(shown), pageInfo, count: list.length };
  }
}

/** The persons as the numbers of their records. */
function recordsOf(persons: PersonList): PagedList<number> {
  return {
    length: persons.length,
    slice: (start, end) => {
      const length = Math.max(0, Math.min(end, persons.length) - start);
      return Array.from({ length }, (_, index) => persons.recordAt(start + index));
    },
    recordAt: (position) => persons.recordAt(position),
    keyAt: (position) => persons.keyAt(position),
    positionAfterKey: (key) => persons.positionAfterKey(key),
    positionOf: (record) => persons.positionOf(record),
  };
}

/** The positions of some persons, in the order of their list. */
function positionsAmong(
  persons: PersonList,
  isWanted: (record: number) => boolean,
): PagedList<number> {
  const positions = Array.from({ length: persons.length }, (_, position) => position);
  return sortedList(
    positions.filter((position) => isWanted(persons.recordAt(position))),
    (position) => persons.recordAt(position),
    (position) => persons.keyAt(position),
  );
}

/** A person's answer to a vacancy. It has no id: the person and the step of the workflow name it. */
interface MadeUpResponse {
  /** Grows with each response, and is its sort key. */
  readonly number: number;
  /** The number of the person's record. */
  readonly person: number;
  readonly vacancy: number;
  readonly step: number;
}

const WORKFLOW = ['Received', 'Invited', 'Rejected'];

/** The first persons have answered to two vacancies each, in two steps of the workflow. A third is for one vacancy. */
function madeUpResponses(allPersons: number, vacancies: number): MadeUpResponse[] {
  const persons = Math.min(allPersons, 1_000);
  return Array.from({ length: 2 * persons }, (_, index) => ({
    number: index + 1,
    person: index % persons,
    vacancy: index % 3 === 0 ? 1 : 1 + ((index * 11) % vacancies),
    step: (Math.floor(index / persons) + (index % persons)) % WORKFLOW.length,
  }));
}

/** Not that of the other lists. */
const SOURCES_LIMIT = 200;

const SOURCES = Array.from({ length: 320 }, (_, index) => ({ number: index + 1 }));

const MANAGERS = Array.from({ length: 73 }, (_, index) => ({ number: index + 1 }));

/** Records with these ids belong to another customer of the service. */
const FIRST_OF_ANOTHER = 2_000_000_000;
const OF_ANOTHER = 'This person belongs to another company.';

function isOfAnother(id: number): boolean {
  return id >= FIRST_OF_ANOTHER;
}

type ErrorType = 'NOT_FOUND' | 'FORBIDDEN';

function missing(type: string, kind: string, id: number): object {
  return failure(type, 'NOT_FOUND', `There is no ${kind} with the id ${id}.`);
}

function failure(type: string, errorType: ErrorType, message: string): object {
  return { __typename: type, errorType, message };
}

function nameOf(record: number): string {
  return personOf(record).firstName;
}

function isNamed(record: number, text: string): boolean {
  return nameOf(record).toLowerCase().includes(text.toLowerCase());
}

function managerItem({ number }: { number: number }): object {
  return { id: number, name: nameOf(number * 5), email: `manager-${number}@example.com` };
}

function personSource({ number }: { number: number }): object {
  return { id: number, name: `Source ${number}` };
}

function workflowStatus(step: number): object {
  return { id: step + 1, name: WORKFLOW[step] };
}

function urlOf(kind: string, id: number): string {
  return `https://jobs.example.com/${kind}/${id}`;
}

/** The events of the first person, more than one page; the other persons have fewer. */
const LONGEST_HISTORY = 120;
/** Keeps the ids of events apart, within an Int for ten million persons. */
const MAX_EVENTS = 200;

function historyOf(record: number): { number: number }[] {
  const length = record === 0 ? LONGEST_HISTORY : (record * 7) % 9;
  return Array.from({ length }, (_, index) => ({
    number: index + 1,
    createdAt: new Date(Date.UTC(2026, 0, 5) + (record + index) * 3_600_000).toISOString(),
    ...eventOf(record + index),
  }));
}

function eventOf(turn: number): object {
  const step = turn % WORKFLOW.length;
  if (step === 0) return { __typename: 'CommentEvent', text: 'Called back, is interested.' };
  if (step === 1) return { __typename: 'StatusEvent', status: workflowStatus(step) };
  return { __typename: 'LetterEvent', subject: 'Your application', isRead: turn % 2 === 0 };
}

const LAST_NAMES = ['Adeyemi', 'Berg', 'Castro', 'Dvořák', 'Eriksson', null, 'Fontaine'];

const sdl = /* GraphQL */ `
  type Query {
    "The persons, a page at a time."
    persons(
      "From 1 to 50. More than 50 counts as 50, and so does leaving it out."
      first: Int
      "The endCursor of the page before."
      after: String
      "Only persons with this text in their first name."
      query: String
    ): Persons!
    "The person with this id, or why there is none."
    person(id: Int!): Person
    "The vacancies, the oldest first."
    vacancies(
      first: Int
      after: String
      "Only vacancies with this status."
      status: VacancyStatus
    ): Vacancies!
    "The vacancy with this id, its public form if it is another company's, or why there is none."
    vacancy(id: Int!): Vacancy
    "The managers, if the administrator of the tokens may see them."
    managers(first: Int, after: String): ManagersResult!
    "Where persons come from."
    personSources(
      "The endCursor of the page before."
      afterCursor: String
      "From 1 to 200. More than 200 counts as 200."
      first: Int!
    ): PersonSources!
    "What persons have answered to vacancies."
    responses(
      first: Int
      after: String
      "Only responses to this vacancy."
      vacancyId: Int
    ): Responses!
  }

  union Person = PersonItem | PersonError

  type PersonItem {
    id: Int!
    firstName: String
    lastName: String
    source: PersonSource
    "What has happened to this person, the oldest first."
    history(first: Int, after: String): HistoryEvents!
  }

  type PersonError {
    errorType: ErrorType!
    message: String!
  }

  enum ErrorType {
    NOT_FOUND
    FORBIDDEN
  }

  type Persons {
    items: [PersonItem!]!
    pageInfo: PageInfo!
    "How many persons all pages have."
    count: Int
  }

  interface HistoryEvent {
    id: Int!
    createdAt: DateTime!
  }

  type CommentEvent implements HistoryEvent {
    id: Int!
    createdAt: DateTime!
    text: String!
  }

  type StatusEvent implements HistoryEvent {
    id: Int!
    createdAt: DateTime!
    status: WorkflowStatus!
  }

  type LetterEvent implements HistoryEvent {
    id: Int!
    createdAt: DateTime!
    subject: String!
    isRead: Boolean!
  }

  "A moment, as RFC 3339 writes it."
  scalar DateTime @specifiedBy(url: "https://scalars.graphql.org/andimarek/date-time.html")

  type HistoryEvents {
    items: [HistoryEvent]
    pageInfo: PageInfo!
  }

  union Vacancy = VacancyItem | VacancyPublic | VacancyError

  type VacancyItem {
    id: Int!
    title: String!
    department: String
    status: VacancyStatus!
    openedOn: Date
    "The persons who have answered to this vacancy."
    persons(first: Int, after: String): Persons!
  }

  enum VacancyStatus {
    OPEN
    ON_HOLD
    CLOSED
  }

  "A day, as ISO 8601 writes it."
  scalar Date @specifiedBy(url: "https://www.iso.org/iso-8601-date-and-time-format.html")

  "What everybody can see of a vacancy."
  type VacancyPublic {
    id: Int!
    title: String!
    url: String!
  }

  type VacancyError {
    errorType: ErrorType!
    message: String!
  }

  type Vacancies {
    items: [VacancyItem!]!
    pageInfo: PageInfo!
    "How many vacancies all pages have."
    count: Int
  }

  union ManagersResult = Managers | ManagersError

  type Managers {
    items: [ManagerItem!]!
    pageInfo: PageInfo!
    "How many managers all pages have."
    count: Int
  }

  type ManagerItem {
    id: Int!
    name: String!
    email: String
  }

  type ManagersError {
    errorType: ErrorType!
    message: String!
  }

  type PersonSource {
    id: Int!
    name: String!
  }

  type PersonSources {
    items: [PersonSource!]!
    pageInfo: PageInfo!
    "How many sources all pages have."
    count: Int
  }

  "A person's answer to a vacancy. The person and the status name it: it has no id."
  type ResponseItem {
    rating: Int
    url: String!
    person: PersonItem!
    workflowStatus: WorkflowStatus!
  }

  type WorkflowStatus {
    id: Int!
    name: String!
  }

  type Responses {
    items: [ResponseItem!]!
    pageInfo: PageInfo!
    "How many responses all pages have."
    count: Int
  }

  type PageInfo {
    "How many elements a full page has, after the limit was applied."
    first: Int!
    "Whether the page after this one has elements."
    hasNextPage: Boolean!
    "Points at the last element of this page; null when it has none."
    endCursor: String
  }
`;
