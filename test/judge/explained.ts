import { Kind, parse, visit } from 'graphql';
import { ERROR_PLACES, FAILED_PAGES } from './compare.ts';
import type { Operation } from './operation.ts';

/** A kind of difference that design.md explains. */
interface Rule {
  readonly name: string;
  /** The words of design.md. */
  readonly line: string;
  readonly applies: (kind: string, operation: Operation) => boolean;
}

const RULES: readonly Rule[] = [
  {
    name: 'null conditions',
    line: 'Not promised any more: conditions that are null (the operation is refused)',
    applies: (kind, operation) =>
      kind.includes('+ (of the gateway) (BAD_USER_INPUT)') && hasNullCondition(operation),
  },
  {
    name: 'failing records',
    line: 'Not promised any more: records that fail inside a page getting requests of their own',
    applies: (kind) => kind === ERROR_PLACES || kind === FAILED_PAGES,
  },
  {
    name: 'lists of a parent that nothing returns by its id',
    line: 'Nested paged lists get the same two fields where the parent can be fetched by id; not promised any more: inlined first pages',
    applies: (kind, { query }) =>
      /^null for .*\+ \(of the gateway\) \(BAD_USER_INPUT\)$/.test(kind) &&
      /\bparent\b/.test(query),
  },
  {
    name: 'a list of which nothing is selected',
    line: 'Only what is selected is fetched (paging.md)',
    applies: (kind) => kind === 'object for null; - You may not see the managers. (FORBIDDEN)',
  },
];

/** @returns the rule and its line; undefined: nothing explains this kind */
export function explanationOf(kind: string, operation: Operation): string | undefined {
  const rule = RULES.find(({ applies }) => applies(kind, operation));
  return rule && `${rule.name}: "${rule.line}"`;
}

/** Whether the variable of a condition is null. */
function hasNullCondition({ query, variables }: Operation): boolean {
  let isNull = false;
  visit(parse(query), {
    Directive: ({ arguments: [condition] = [] }) => {
      const value = condition?.value;
      if (value?.kind === Kind.VARIABLE && variables[value.name.value] === null) isNull = true;
    },
  });
  return isNull;
}
