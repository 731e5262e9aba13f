import {
  Kind,
  OperationTypeNode,
  visit,
  type DocumentNode,
  type FragmentDefinitionNode,
  type GraphQLError,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import { codedError } from '../errors.ts';
import { excessOf, parseWithin, type Excess, type Limits } from './limits.ts';
import { findRouterFields } from './router-fields.ts';
import { validationErrors } from './validation.ts';

/**
 * One operation of a document, with everything about it that depends on neither its variables nor its caller. It is
 * made once and kept, so a request with a known text parses, visits and validates nothing.
 */
export interface CheckedOperation<Plan = unknown> {
  readonly text: string;
  readonly document: DocumentNode;
  /** The definition that `operationName` selects. */
  readonly operation: OperationDefinitionNode;
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
  readonly type: OperationTypeNode;
  readonly name: string | undefined;
  /** Whether the document has a `@defer` or a `@stream`. */
  readonly isIncremental: boolean;
  /** The fields for routers that it selects on the query root: `_service`, `_entities`. */
  readonly routerFields: readonly string[];
  /** What of the document is over a limit. */
  readonly excess: readonly Excess[] | 'broken';
  /** What validation says of the document. Read it after `excess`: validation is what a hostile document makes expensive. */
  readonly errors: readonly GraphQLError[];
  /** What `compile` returned. Made when it is first read; what `compile` throws is not kept. */
  readonly plan: Plan;
}

export interface OperationRules<Plan> extends Limits {
  /** The one that is served. */
  readonly schema: GraphQLSchema;
  /** Where it is off, `errors` has an error for each introspection field, and no message suggests a name. */
  readonly introspection: boolean;
  readonly compile?: (operation: CheckedOperation<Plan>) => Plan;
}

export interface Operations<Plan = unknown> {
  /** @throws GraphQLError for a text that does not parse, and for a name that selects no operation of it */
  find(text: string, operationName: unknown): CheckedOperation<Plan>;
}

/** Characters of all documents together. Parsed, they take some 150 times as much memory. */
const MAX_CHARACTERS = 500_000;

/**
 * Keeps checked operations by their text, as long as the texts together stay below a size. A bound by number would
 * not do: 1,024 documents with 2,000 tokens each take 800 MB. A text that does not parse is not kept.
 */
export function createOperations<Plan>(rules: OperationRules<Plan>): Operations<Plan> {
  const parse = parseWithin(rules.maxTokens);
  const documents = new LRUCache<string, CheckedDocument<Plan>>({
    maxSize: MAX_CHARACTERS,
    sizeCalculation: (_document, text) => text.length + 1,
  });
  return {
    find: (text, operationName) => {
      let document = documents.get(text);
      if (!document) {
        document = new CheckedDocument(text, parse(text), rules);
        documents.set(text, document);
      }
      return document.select(operationName);
    },
  };
}

class CheckedDocument<Plan> {
  readonly text: string;
  readonly node: DocumentNode;
  readonly rules: OperationRules<Plan>;
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
  readonly isIncremental: boolean;
  readonly #operations: ReadonlyMap<string | undefined, CheckedOperation<Plan>>;
  /** For requests without an `operationName`. */
  readonly #only: CheckedOperation<Plan> | undefined;
  readonly #names: readonly (string | undefined)[];
  #excess: readonly Excess[] | 'broken' | undefined;
  #errors: readonly GraphQLError[] | undefined;

  constructor(text: string, node: DocumentNode, rules: OperationRules<Plan>) {
    this.text = text;
    this.node = node;
    this.rules = rules;
    const { definitions } = node;
    this.fragments = Object.fromEntries(
      definitions.flatMap((one) =>
        one.kind === Kind.FRAGMENT_DEFINITION ? [[one.name.value, one]] : [],
      ),
    );
    this.isIncremental = hasIncremental(node);
    const operations = definitions.filter((one) => one.kind === Kind.OPERATION_DEFINITION);
    const selectable = operations.map((one) => new SelectedOperation(one, this));
    this.#names = selectable.map(({ name }) => name);
    this.#operations = new Map(selectable.map((one) => [one.name, one]));
    this.#only = selectable.length === 1 ? selectable[0] : undefined;
  }

  select(operationName: unknown): CheckedOperation<Plan> {
    if (operationName === undefined || operationName === null) {
      if (this.#only) return this.#only;
      throw refused(`Say with operationName which operation to run; there is ${this.#spoken()}.`);
    }
    if (typeof operationName !== 'string') {
      throw refused(`The operationName must be a string; there is ${this.#spoken()}.`);
    }
    const found = this.#operations.get(operationName);
    if (found) return found;
    throw refused(
      `There is no operation named "${operationName}" in this document; there is ${this.#spoken()}.`,
    );
  }

  get excess(): readonly Excess[] | 'broken' {
    return (this.#excess ??= excessOf(this.node, this.rules));
  }

  get errors(): readonly GraphQLError[] {
    return (this.#errors ??= validationErrors(this.node, {
      ...this.rules,
      hasBrokenFragments: this.excess === 'broken',
      hideSuggestions: !this.rules.introspection,
    }));
  }

  #spoken(): string {
    return this.#names.map((name) => name ?? 'one without a name').join(', ') || 'none';
  }
}

class SelectedOperation<Plan> implements CheckedOperation<Plan> {
  readonly text: string;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
  readonly type: OperationTypeNode;
  readonly name: string | undefined;
  readonly isIncremental: boolean;
  readonly #of: CheckedDocument<Plan>;
  #routerFields: readonly string[] | undefined;
  #plan: { readonly made: Plan } | undefined;

  constructor(operation: OperationDefinitionNode, of: CheckedDocument<Plan>) {
    this.text = of.text;
    this.document = of.node;
    this.operation = operation;
    this.fragments = of.fragments;
    this.type = operation.operation;
    this.name = operation.name?.value;
    this.isIncremental = of.isIncremental;
    this.#of = of;
  }

  get routerFields(): readonly string[] {
    const { schema } = this.#of.rules;
    return (this.#routerFields ??= findRouterFields(schema, this.document, this.operation));
  }

  get excess(): readonly Excess[] | 'broken' {
    return this.#of.excess;
  }

  get errors(): readonly GraphQLError[] {
    return this.#of.errors;
  }

  get plan(): Plan {
    const { compile } = this.#of.rules;
    if (!compile) throw new Error('Nothing compiles operations here.');
    return (this.#plan ??= { made: compile(this) }).made;
  }
}

function hasIncremental(document: DocumentNode): boolean {
  let found = false;
  visit(document, {
    Directive: ({ name }) => {
      if (name.value === 'defer' || name.value === 'stream') found = true;
    },
  });
  return found;
}

function refused(message: string): GraphQLError {
  return codedError('BAD_USER_INPUT', message, { extensions: { http: { status: 400 } } });
}
