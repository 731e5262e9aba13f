import {
  isAbstractType,
  Kind,
  OperationTypeNode,
  separateOperations,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
  type GraphQLCompositeType,
  type GraphQLError,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import { badRequest } from '../errors.ts';
import { excessOf, parseWithin, type Excess, type Limits } from './limits.ts';
import { validationErrors } from './validation.ts';

export interface OperationRules<Plan> extends Limits {
  /** The served schema. */
  readonly schema: GraphQLSchema;
  /** If false, `errors` has an error for each introspection field, and messages suggest no names. */
  readonly introspection: boolean;
  readonly compile?: (operation: Omit<CheckedOperation, 'plan'>) => Plan;
}

export interface Operations<Plan = unknown> {
  /** @throws GraphQLError for a text that does not parse, or a name that selects none of its operations */
  find(text: string, operationName: unknown): CheckedOperation<Plan>;
}

/** Characters of all documents together. Parsed, they take about 150 times as much memory. */
const MAX_CHARACTERS = 500_000;

/**
 * Keeps checked operations by their text, up to a total size of the texts. A bound by number would not do: 1,024
 * documents with 2,000 tokens each take 800 MB. A text that does not parse is not kept.
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
        document = new CheckedDocument(parse(text), rules);
        documents.set(text, document);
      }
      return document.select(operationName);
    },
  };
}

/**
 * One operation of a document, with everything that depends on neither its variables nor its caller. It is made once
 * and kept, so a request with a known text needs no parsing, visiting or validation.
 */
export class CheckedOperation<Plan = unknown> {
  readonly document: DocumentNode;
  /** The definition that `operationName` selects. */
  readonly operation: OperationDefinitionNode;
  readonly type: OperationTypeNode;
  /** Whether the document has a `@defer` or a `@stream`. */
  readonly isIncremental: boolean;
  readonly #of: CheckedDocument<Plan>;
  #routerFields: readonly string[] | undefined;
  #plan: { readonly made: Plan } | undefined;

  constructor(operation: OperationDefinitionNode, of: CheckedDocument<Plan>) {
    this.document = of.node;
    this.operation = operation;
    this.type = operation.operation;
    this.isIncremental = of.isIncremental;
    this.#of = of;
  }

  get name(): string | undefined {
    return this.operation.name?.value;
  }

  /** Which of `_service` and `_entities`, the fields for routers, it selects on the query root. */
  get routerFields(): readonly string[] {
    const { schema } = this.#of.rules;
    return (this.#routerFields ??= findRouterFields(schema, this.document, this.operation));
  }

  /** The limits that the document exceeds. */
  get excess(): readonly Excess[] | 'broken' {
    return this.#of.excess;
  }

  /** The validation errors of the document. Read `excess` first: a hostile document can make validation expensive. */
  get errors(): readonly GraphQLError[] {
    return this.#of.errors;
  }

  /** The result of `compile`, called on first use. An error that it throws is not kept. */
  get plan(): Plan {
    return (this.#plan ??= { made: this.#of.rules.compile!(this) }).made;
  }
}

class CheckedDocument<Plan> {
  readonly node: DocumentNode;
  readonly rules: OperationRules<Plan>;
  readonly isIncremental: boolean;
  readonly #operations: readonly CheckedOperation<Plan>[];
  #excess: readonly Excess[] | 'broken' | undefined;
  #errors: readonly GraphQLError[] | undefined;

  constructor(node: DocumentNode, rules: OperationRules<Plan>) {
    this.node = node;
    this.rules = rules;
    this.isIncremental = hasIncremental(node);
    const operations = node.definitions.filter((one) => one.kind === Kind.OPERATION_DEFINITION);
    this.#operations = operations.map((one) => new CheckedOperation(one, this));
  }

  select(operationName: unknown): CheckedOperation<Plan> {
    if (operationName === undefined || operationName === null) {
      const [only, ...others] = this.#operations;
      if (only && others.length === 0) return only;
      throw badRequest(
        `Say with operationName which operation to run; there is ${this.#listed()}.`,
      );
    }
    if (typeof operationName !== 'string') {
      throw badRequest(`The operationName must be a string; there is ${this.#listed()}.`);
    }
    const found = this.#operations.findLast(({ name }) => name === operationName);
    if (found) return found;
    throw badRequest(
      `There is no operation named "${operationName}" in this document; there is ${this.#listed()}.`,
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

  #listed(): string {
    const names = this.#operations.map(({ name }) => name ?? 'one without a name');
    return names.join(', ') || 'none';
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

const ROUTER_FIELDS = ['_service', '_entities'];

/** Finds the fields for routers that an operation selects on the query root, at any depth and under any alias. */
function findRouterFields(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): readonly string[] {
  // Most documents have none of these names, and a name cannot be written in another way.
  const text = document.loc?.source.body;
  if (text !== undefined && !ROUTER_FIELDS.some((name) => text.includes(name))) return [];
  const found = new Set<string>();
  const types = new TypeInfo(schema);
  // The operation and its own fragments.
  const selected = separateOperations(document)[operation.name?.value ?? ''] ?? document;
  visit(
    selected,
    visitWithTypeInfo(types, {
      Field: ({ name: { value } }) => {
        if (ROUTER_FIELDS.includes(value) && isRoot(types.getParentType(), schema))
          found.add(value);
      },
    }),
  );
  return [...found];
}

function isRoot(type: GraphQLCompositeType | null | undefined, schema: GraphQLSchema): boolean {
  const root = schema.getQueryType();
  if (!type || !root) return false;
  return type === root || (isAbstractType(type) && schema.isSubType(type, root));
}
