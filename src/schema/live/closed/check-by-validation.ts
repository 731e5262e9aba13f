import {
  isInterfaceType,
  isSpecifiedDirective,
  isUnionType,
  parse,
  validate,
  type ExecutionResult,
  type GraphQLSchema,
} from 'graphql';
import { codedError, codeOf } from '../../../errors.ts';
import type { SchemaChange } from '../compare-schemas.ts';
import { answerTo, closedIntrospection, onOneLine, type Execute } from '../introspect.ts';
import { impossibleField, probeDocument, type ProbeDocument } from './probe-document.ts';
import { mentions, readRefusal } from './read-refusal.ts';
import { keyOf, partsOf, type Part, type SnapshotParts } from './snapshot-parts.ts';

/** A part of the snapshot that the service no longer accepts. */
interface LostPart {
  readonly part: Part;
  /** Why, in the service's words. */
  readonly words: string;
}

/** What can be seen of the live schema without introspection. */
interface SeenByValidation {
  readonly breaking: readonly SchemaChange[];
  /** The keys of the parts of the snapshot that cannot be requested any more. */
  readonly gone: ReadonlySet<string>;
  /** What was not compared, in sentences. */
  readonly unseen: readonly string[];
}

interface ValidationCheck {
  readonly snapshot: GraphQLSchema;
  readonly execute: Execute;
  readonly signal: AbortSignal;
  /** Why this is necessary, in the service's words. */
  readonly refused: string;
  readonly maxRequests: number;
}

/** Parts in a document. Services that refuse so many get half of them. */
const PARTS = 400;

/**
 * Finds what the service no longer accepts of the snapshot, if introspection is closed. It sends the parts of the
 * snapshot in documents with a field that cannot exist: the service refuses them, executes nothing, and lists what else
 * it does not know. What it names is left out of the next documents, until they have no other mistake. Where its errors
 * name nothing, the document is halved.
 *
 * @throws coded errors: of the request, if the service does not list the mistakes of a document, or if it executes one
 */
export async function checkByValidation(check: ValidationCheck): Promise<SeenByValidation> {
  const { snapshot, maxRequests } = check;
  const lost = new Map<string, LostPart>();
  /** Keys of what is no longer asked. */
  const gone = new Set<string>();
  /** Types whose fields the service does not let us ask, with its words. */
  const closed = new Map<string, string>();
  const notes: string[] = [];
  let requests = 0;
  let atMost = PARTS;
  let largest = 0;

  const reports = await calibrate();
  const isReported = ({ kind }: Part) =>
    kind === 'value' ? reports.values : reports.arguments || kind === 'field' || kind === 'member';
  for (const kinds of ['selectable', 'givable'] as const) await checkAll(kinds);
  return {
    breaking: [...lost.values()].map((one) => changeOf(one, snapshot)),
    gone,
    unseen: unseen(),
  };

  async function checkAll(kinds: 'selectable' | 'givable'): Promise<void> {
    const waiting: Part[][] = [present()[kinds].filter(isReported)];
    for (let group = waiting.pop(); group; group = waiting.pop()) {
      const parts = present();
      const there = new Set([...parts.selectable, ...parts.givable].map(keyOf));
      const left = group.filter((part) => there.has(keyOf(part)));
      if (left.length > atMost) waiting.push(left.slice(atMost));
      const asked = left.slice(0, atMost);
      const document = probeDocument(asked, parts, snapshot);
      if (!document) continue;
      // Parts may conflict in one document. What is not valid for the snapshot says nothing about the service.
      const isFair = hasOneMistake(document, snapshot);
      if (isFair && requests >= maxRequests) {
        notes.push(
          `The check was stopped after ${requests} requests. What follows was not compared.`,
        );
        return;
      }
      const found = isFair ? await ask(document, asked) : 'halve';
      if (found === 'again') waiting.push(asked);
      // The first half is asked first: what is nearer to the root leads to the rest.
      if (found === 'halve' && asked.length > 1) {
        const half = Math.ceil(asked.length / 2);
        waiting.push(asked.slice(half), asked.slice(0, half));
      }
    }
  }

  /** @returns `again` without what was found to be lost; `halve` if the answer says that something is wrong, but not what */
  async function ask(document: ProbeDocument, asked: Part[]): Promise<'done' | 'again' | 'halve'> {
    const answer = await send(document.text, asked.length > 1);
    const refusal = answer && readRefusal(answer, document);
    for (const { part, words } of refusal?.named.values() ?? []) lose(part, words);
    if (refusal && refusal.named.size > 0) return 'again';
    if (!refusal?.isValidated || refusal.limit !== undefined) {
      if (asked.length > largest) atMost = Math.min(atMost, Math.ceil(asked.length / 2));
      if (asked.length === 1) closed.set(asked[0]!.holder, refusal?.limit ?? wordsOf(answer));
      return 'halve';
    }
    if (refusal.unclear === undefined) {
      largest = Math.max(largest, asked.length);
      return 'done';
    }
    if (asked.length === 1) lose(asked[0]!, refusal.unclear);
    return 'halve';
  }

  function lose(part: Part, words: string): void {
    gone.add(keyOf(part));
    const changed = [...lost.values()].find(
      ({ part: { kind, holder, name, argument } }) =>
        kind === 'argument' &&
        holder === part.holder &&
        name === part.name &&
        new RegExp(`\\b${argument}\\b`).test(words),
    );
    // The field misses the argument that is no longer given: one change, not two.
    if (part.kind === 'field' && changed) return;
    lost.set(keyOf(part), { part, words: onOneLine(words) });
  }

  function present(): SnapshotParts {
    return partsOf(snapshot, gone, new Set(closed.keys()));
  }

  /** Sends documents with mistakes of each kind, to know which of them the service lists. */
  async function calibrate(): Promise<{ arguments: boolean; types: boolean; values: boolean }> {
    const name = impossibleField(snapshot);
    const fields = [
      'query {',
      '  ... @skip(if: true) {',
      `    ${name}`,
      `    __typename(${name}Argument: 1)`,
      `    ${name}Either`,
      '  }',
      '}',
    ];
    const variables = [
      'query (',
      `  $unknown: ${name}Type`,
      '  $wrong: Boolean = 3',
      ') {',
      '  ... @skip(if: true) {',
      `    ${name}(unknown: $unknown, wrong: $wrong)`,
      '  }',
      '}',
    ];
    const first = (await send(fields.join('\n'), false))!;
    if (!mentions(first, 3, name) || !mentions(first, 5, `${name}Either`)) throw unreadable(first);
    const second = (await send(variables.join('\n'), false))!;
    return {
      arguments: mentions(first, 4, `${name}Argument`),
      types: mentions(second, 2, `${name}Type`),
      values: mentions(second, 3, 'wrong') || mentions(second, 3, 'Boolean'),
    };
  }

  function unreadable(answer: ExecutionResult): Error {
    return codedError(
      'UPSTREAM_BAD_RESPONSE',
      `${closedIntrospection(check)} Nor do its errors list what is wrong with a document ` +
        `(${onOneLine(wordsOf(answer))}). Ask its support to allow introspection, or maintain the snapshot by hand.`,
    );
  }

  /** @returns undefined if the service refused the document without GraphQL errors, and a smaller one can be sent */
  async function send(text: string, canBeSmaller: boolean): Promise<ExecutionResult | undefined> {
    requests += 1;
    let answer: ExecutionResult;
    try {
      answer = await answerTo(text, check.execute, check.signal);
    } catch (error) {
      if (canBeSmaller && codeOf(error) === 'UPSTREAM_BAD_RESPONSE') return undefined;
      throw error;
    }
    if (answer.data === null || answer.data === undefined) return answer;
    throw codedError(
      'UPSTREAM_BAD_RESPONSE',
      `${closedIntrospection(check)} The schema cannot be compared without it either: the service executed a document ` +
        'with a field that does not exist, instead of refusing it. Everything in the document is skipped (@skip), so ' +
        'nothing was read, and no more documents were sent. Ask its support to allow introspection, or maintain the ' +
        'snapshot by hand.',
    );
  }

  function unseen(): string[] {
    const parts = present();
    const types = Object.values(snapshot.getTypeMap()).filter(
      ({ name }) => !name.startsWith('__') && !parts.isReached(name),
    );
    const root = snapshot.getMutationType();
    const directives = snapshot.getDirectives().filter((each) => !isSpecifiedDirective(each));
    return [
      'Introspection is closed, so the service was asked with documents that it refuses. Additions cannot be seen, nor ' +
        'changes of scalar types of fields, of what may be null, and of what is a list.',
      ...(root ? ['Mutations were not checked.'] : []),
      ...(directives.length > 0
        ? [`Directives were not checked: ${shortened(directives.map(({ name }) => `@${name}`))}.`]
        : []),
      ...(reports.arguments
        ? []
        : ['Arguments were not checked: the service does not list unknown ones.']),
      ...(reports.types
        ? []
        : ['The types of arguments were not checked: the service does not list unknown ones.']),
      ...(reports.values
        ? []
        : ['Enum values were not checked: the service does not list wrong ones.']),
      ...[...closed].map(([type, words]) => `${type} was not checked: ${onOneLine(words)}`),
      ...(types.length > 0
        ? [
            `Not checked, because no query leads to it: ${shortened(types.map(({ name }) => name))}.`,
          ]
        : []),
      ...notes,
    ];
  }
}

function wordsOf(answer: ExecutionResult | undefined): string {
  const message: unknown = answer?.errors?.[0]?.message;
  return typeof message === 'string' ? message : 'the service refuses this document';
}

const SHOWN = 10;

function shortened(names: readonly string[]): string {
  const more = names.length - SHOWN;
  return `${names.slice(0, SHOWN).join(', ')}${more > 0 ? `, and ${more} more` : ''}`;
}

function hasOneMistake({ text }: ProbeDocument, snapshot: GraphQLSchema): boolean {
  return validate(snapshot, parse(text)).length === 1;
}

/** How errors say that something does not exist, in the words of any server. */
const GONE =
  /\b(cannot query|undefined|unknown|not (exist|defined|accept)|no such|contains a field not in)\b/i;

/** In the words of a comparison, if the service says that the part does not exist; otherwise in its own. */
function changeOf({ part, words }: LostPart, snapshot: GraphQLSchema): SchemaChange {
  const { kind, holder, name, argument } = part;
  const path =
    kind === 'member' ? holder : [holder, name, ...(argument ? [argument] : [])].join('.');
  const text = words.replaceAll("n't", ' not');
  const isNamed = new RegExp(`(?<!\\w)${argument ?? name}(?!\\w)`).test(text);
  const isGone = kind === 'value' || kind === 'member' || (isNamed && GONE.test(text));
  return { message: isGone ? removed(part, snapshot) : `${path}: ${words}`, path };
}

function removed({ kind, holder, name, argument }: Part, snapshot: GraphQLSchema): string {
  const type = snapshot.getType(holder);
  if (kind === 'value') return `Enum value '${name}' was removed from enum '${holder}'`;
  if (kind === 'input')
    return `Input field '${name}' was removed from input object type '${holder}'`;
  if (kind === 'member') {
    return type && isUnionType(type)
      ? `Member '${name}' was removed from Union type '${holder}'`
      : `'${name}' object type no longer implements '${holder}' interface`;
  }
  if (kind === 'argument')
    return `Argument '${argument}' was removed from field '${holder}.${name}'`;
  return `Field '${name}' was removed from ${isInterfaceType(type) ? 'interface' : 'object'} type '${holder}'`;
}
