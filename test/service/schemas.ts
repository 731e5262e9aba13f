import { readFileSync } from 'node:fs';
import type { GraphQLSchema } from 'graphql';
import { personOf, type Person } from '../../sandbox/persons.ts';
import { personsPage, type PageArguments } from '../../sandbox/persons-schema.ts';
import { failure, makeExecutableSchema, pageOf as pageOfArray, range } from './lists.ts';
import type { PersonList } from './person-list.ts';

const VACANCIES = 64;
const STATUSES = ['OPEN', 'OPEN', 'ON_HOLD', 'CLOSED'];
const STAGES = ['NEW', 'INTERVIEW', 'OFFER', 'HIRED', 'REJECTED'];
const TITLES = ['Backend engineer', 'Account manager', 'Nurse', 'Data analyst', 'Recruiter'];

function vacancyFields(number: number) {
  return {
    title: pick(TITLES, number),
    department: number % 6 === 0 ? null : `Department ${number % 4}`,
    status: pick(STATUSES, number),
    openedOn: `2026-01-${String((number % 28) + 1).padStart(2, '0')}`,
  };
}

interface Candidate {
  readonly id: string;
  readonly vacancy: { readonly id: string };
  readonly person: Person;
  stage: string;
}

interface NewCandidate {
  readonly vacancyId: string;
  readonly personId: string;
  readonly stage: string;
}

/** The persons of the sandbox, with vacancies, candidates and their comments: `schema/rich.graphql`. */
export function richSchema(persons: PersonList): GraphQLSchema {
  const candidates: Candidate[] = [];
  const comments: { id: string; candidate: string; text: string }[] = [];
  const candidatesPage = (isWanted: (candidate: Candidate) => boolean) => {
    return ({ stage, ...args }: PageArguments & { stage?: string | null }) =>
      pageOfArray(
        candidates.filter((each) => (stage == null || each.stage === stage) && isWanted(each)),
        args,
      );
  };
  const vacancies = range(VACANCIES).map((number) => {
    const id = String(number);
    const ofThis = candidatesPage(({ vacancy }) => vacancy.id === id);
    return { id, ...vacancyFields(number), candidates: ofThis };
  });
  const addComment = (candidate: string, text: string) => {
    const comment = { id: String(comments.length + 1), candidate, text };
    comments.push(comment);
    return comment;
  };
  const addCandidate = (vacancy: Candidate['vacancy'], person: Person, stage: string) => {
    const id = String(candidates.length + 1);
    const ofThis = (args: PageArguments) =>
      pageOfArray(
        comments.filter((comment) => comment.candidate === id),
        args,
        20,
      );
    const candidate = { id, vacancy, person, stage, comments: ofThis };
    candidates.push(candidate);
    return candidate;
  };

  // The first vacancy has three pages of candidates, and its first candidate three of comments.
  const people = persons.all();
  for (const vacancy of people.length > 0 ? vacancies : []) {
    const number = Number(vacancy.id);
    for (let left = number === 1 ? 120 : (number * 13) % 31; left > 0; left -= 1) {
      const next = candidates.length + 1;
      const { id } = addCandidate(vacancy, pick(people, next * 7), pick(STAGES, next * 3));
      const remarks = next === 1 ? 45 : next % 4;
      for (const remark of range(remarks)) addComment(id, `Remark ${remark} about ${next}`);
    }
  }

  return makeExecutableSchema(readFileSync('schema/rich.graphql', 'utf8'), {
    Query: {
      persons: (_: unknown, args: PageArguments) => personsPage(args, persons.read),
      vacancies: (_: unknown, { status, titleContains, ...args }: VacancyArguments) =>
        pageOfArray(
          vacancies.filter(
            (each) =>
              (status == null || each.status === status) &&
              each.title.toLowerCase().includes((titleContains ?? '').toLowerCase()),
          ),
          args,
        ),
      vacancy: (_: unknown, { id }: { id: string }) =>
        vacancies.find((vacancy) => vacancy.id === id) ?? null,
      candidates: (_: unknown, args: PageArguments) => candidatesPage(() => true)(args),
    },
    Mutation: {
      createCandidate: (_: unknown, { input }: { input: NewCandidate }) =>
        addCandidate(find(vacancies, input.vacancyId), find(people, input.personId), input.stage),
      moveCandidate: (_: unknown, { id, stage }: { id: string; stage: string }) =>
        Object.assign(find(candidates, id), { stage }),
      addComment: (_: unknown, { candidateId, text }: { candidateId: string; text: string }) =>
        addComment(find(candidates, candidateId).id, text),
    },
  });
}

interface VacancyArguments extends PageArguments {
  status?: string | null;
  titleContains?: string | null;
}

function find<T extends { readonly id: string }>(records: readonly T[], id: string): T {
  const found = records.find((record) => record.id === id);
  if (!found) throw failure(`There is no record with the id ${JSON.stringify(id)}.`);
  return found;
}

/** Records with these ids belong to another customer of the service. */
const FIRST_OF_ANOTHER = 2_000_000_000;
const OF_ANOTHER = 'This person belongs to another company.';
const LAST_NAMES = ['Adeyemi', 'Berg', 'Castro', 'Dvořák', 'Eriksson', null, 'Fontaine'];
const STEPS = ['Received', 'Invited', 'Rejected'].map((name, index) => ({ id: index + 1, name }));
const SOURCES = range(320).map((id) => ({ id, name: `Source ${id}` }));
const MANAGERS = range(73).map((id) => ({
  id,
  name: `Manager ${id}`,
  email: `manager-${id}@example.com`,
}));

/**
 * Lists in the manner of services that return errors as data: `schema/results.graphql`. A field returns a union of its
 * record or page and of an error type. Some lists have a total, records without an id, items of several types, or
 * another name for the cursor's argument.
 *
 * @param count the number of persons
 * @param rights whether the administrator of the tokens may see the managers
 */
export function resultsSchema(count: number, { managers }: { managers: boolean }): GraphQLSchema {
  const persons = range(count).map((id) => ({
    __typename: 'PersonItem',
    id,
    firstName: personOf(id - 1).firstName,
    lastName: pick(LAST_NAMES, id - 1),
    source: pick(SOURCES, id - 1),
    history: (args: PageArguments) => pageOfArray(historyOf(id), args),
  }));
  const answering = persons.slice(0, 1_000);
  // Each person has answered to two vacancies. A third of the answers is for one vacancy.
  const responses = [...answering, ...answering].map((person, index) => ({
    rating: index % 4 === 3 ? null : (index * 3) % 5,
    url: `https://jobs.example.com/responses/${index + 1}`,
    person,
    vacancy: index % 3 === 0 ? 1 : 1 + ((index * 11) % VACANCIES),
    workflowStatus: pick(STEPS, Math.floor(index / answering.length) + person.id),
  }));
  const vacancies = range(VACANCIES).map((id) => ({
    __typename: 'VacancyItem',
    id,
    ...vacancyFields(id),
    persons: (args: PageArguments) => {
      const ofThis = responses.filter(({ vacancy }) => vacancy === id).map(({ person }) => person);
      return pageOfArray(
        persons.filter((person) => ofThis.includes(person)),
        args,
      );
    },
  }));

  return makeExecutableSchema(readFileSync('schema/results.graphql', 'utf8'), {
    Query: {
      persons: (_: unknown, { query, ...args }: PageArguments & { query?: string | null }) =>
        pageOfArray(
          persons.filter((each) =>
            each.firstName.toLowerCase().includes((query ?? '').toLowerCase()),
          ),
          args,
        ),
      person: (_: unknown, { id }: { id: number }) =>
        id >= FIRST_OF_ANOTHER
          ? refused('PersonError', 'FORBIDDEN', OF_ANOTHER)
          : (persons[id - 1] ?? missing('PersonError', id)),
      vacancies: (_: unknown, { status, ...args }: PageArguments & { status?: string | null }) =>
        pageOfArray(
          vacancies.filter((each) => status == null || each.status === status),
          args,
        ),
      vacancy: (_: unknown, { id }: { id: number }) =>
        id >= FIRST_OF_ANOTHER
          ? { __typename: 'VacancyPublic', id, title: 'Gardener', url: 'https://jobs.example.com' }
          : (vacancies[id - 1] ?? missing('VacancyError', id)),
      managers: (_: unknown, args: PageArguments) =>
        managers
          ? { __typename: 'Managers', ...pageOfArray(MANAGERS, args) }
          : refused('ManagersError', 'FORBIDDEN', 'You may not see the managers.'),
      personSources: (_: unknown, { first, afterCursor: after }: SourceArguments) =>
        pageOfArray(SOURCES, { first, after }, 200),
      responses: (_: unknown, { vacancyId, ...args }: PageArguments & { vacancyId?: number }) =>
        pageOfArray(
          responses.filter(({ vacancy }) => vacancyId == null || vacancy === vacancyId),
          args,
        ),
    },
  });
}

interface SourceArguments {
  first: number;
  afterCursor: string | null;
}

function missing(type: string, id: number): object {
  return refused(type, 'NOT_FOUND', `There is no record with the id ${id}.`);
}

function refused(__typename: string, errorType: 'NOT_FOUND' | 'FORBIDDEN', message: string) {
  return { __typename, errorType, message };
}

/** The events of the first person, more than one page; the other persons have fewer. */
function historyOf(person: number): object[] {
  return range(person === 1 ? 120 : (person * 7) % 9).map((number) => ({
    id: person * 200 + number,
    createdAt: new Date(Date.UTC(2026, 0, 5) + number * 3_600_000).toISOString(),
    ...pick(
      [
        { __typename: 'CommentEvent', text: 'Called back, is interested.' },
        { __typename: 'StatusEvent', status: STEPS[1] },
        { __typename: 'LetterEvent', subject: 'Your application', isRead: number % 2 === 0 },
      ],
      person + number,
    ),
  }));
}

function pick<T>(from: readonly T[], index: number): T {
  return from[index % from.length]!;
}
