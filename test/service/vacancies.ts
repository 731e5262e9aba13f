import type { PagedList } from '../../sandbox/cursors.ts';

/** A record of the rich schema. Its number grows with each new record, and is its id and its sort key. */
interface Numbered {
  readonly number: number;
}

export interface Vacancy extends Numbered {
  readonly title: string;
  readonly department: string;
  readonly status: (typeof statuses)[number];
  /** A date, as ISO 8601 writes it. */
  readonly openedOn: string;
}

export interface Candidate extends Numbered {
  readonly vacancy: number;
  /** The position of the person when the sandbox started. */
  readonly person: number;
  stage: (typeof stages)[number];
}

export interface Comment extends Numbered {
  readonly candidate: number;
  readonly text: string;
}

/** What mutations change. */
export interface Applications {
  candidates: Candidate[];
  comments: Comment[];
}

const statuses = ['OPEN', 'ON_HOLD', 'CLOSED'] as const;
const stages = ['NEW', 'INTERVIEW', 'OFFER', 'HIRED', 'REJECTED'] as const;

const VACANCIES = 64;

/** Two pages of made-up vacancies, the same every time. */
export function madeUpVacancies(): Vacancy[] {
  return Array.from({ length: VACANCIES }, (_, index) => {
    const [title = '', department = ''] = positions[index % positions.length]!;
    const opened = new Date(Date.UTC(2026, 0, 5) + index * 3 * 86_400_000);
    return {
      number: index + 1,
      title,
      department,
      status: statuses[index % 4 === 3 ? 2 : index % 5 === 4 ? 1 : 0],
      openedOn: opened.toISOString().slice(0, 10),
    };
  });
}

/** Candidates for these vacancies: the first one has three pages of them, and its first candidate three of comments. */
export function madeUpApplications(vacancies: readonly Vacancy[], persons: number): Applications {
  const candidates: Candidate[] = [];
  const comments: Comment[] = [];
  for (const { number: vacancy } of persons > 0 ? vacancies : []) {
    const count = vacancy === 1 ? 120 : (vacancy * 13) % 31;
    for (let index = 0; index < count; index += 1) {
      const number = candidates.length + 1;
      candidates.push({
        number,
        vacancy,
        person: (number * 7) % persons,
        stage: stages[(number * 3) % stages.length]!,
      });
      for (let left = number === 1 ? 45 : number % 4; left > 0; left -= 1) {
        const text = remarks[(number + left) % remarks.length]!;
        comments.push({ number: comments.length + 1, candidate: number, text });
      }
    }
  }
  return { candidates, comments };
}

/** A list of records in the order of their sort keys. */
export function sortedList<T>(
  records: readonly T[],
  numberOf: (record: T) => number,
  keyOf: (record: T) => string,
): PagedList<T> {
  return {
    length: records.length,
    slice: (start, end) => records.slice(start, end),
    recordAt: (position) => numberOf(records[position]!),
    keyAt: (position) => keyOf(records[position]!),
    positionAfterKey: (key) => {
      const position = records.findIndex((record) => keyOf(record) > key);
      return position < 0 ? records.length : position;
    },
    positionOf: (number) => {
      const position = records.findIndex((record) => numberOf(record) === number);
      return position < 0 ? undefined : position;
    },
  };
}

/** @param records in the order of their numbers */
export function numberedList<T extends Numbered>(records: readonly T[]): PagedList<T> {
  return sortedList(
    records,
    ({ number }) => number,
    ({ number }) => number.toString(36).padStart(8, '0'),
  );
}

const positions = [
  ['Backend engineer', 'Engineering'],
  ['Account manager', 'Sales'],
  ['Nurse', 'Care'],
  ['Data analyst', 'Engineering'],
  ['Warehouse clerk', 'Logistics'],
  ['Product designer', 'Design'],
  ['Recruiter', 'People'],
];

const remarks = [
  'Called back, is interested.',
  'Asked for a later start.',
  'Strong references.',
  'Prefers to work from home.',
  'Please invite for a second interview.',
];
