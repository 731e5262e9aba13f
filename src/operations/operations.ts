import {
  Kind,
  print,
  type DocumentNode,
  type GraphQLError,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type OperationTypeNode,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import { badRequest } from '../errors.ts';
import type { ScopedUse } from '../schema/field-scopes.ts';
import { hasIncremental } from '../schema/incremental-directives.ts';
import { onlyOperation, visitFields } from '../selections.ts';
import { excessOf, parseWithin, type Excess, type Limits } from './limits.ts';
import { validationErrors } from './validation.ts';

interface OperationRules<Plan> extends Limits {
  /** The offered schema for requests; the served one for what added fields delegate. */
  readonly schema: GraphQLSchema;
  /** If false, `errors` has an error for each introspection field, and messages suggest no names. */
  readonly introspection: boolean;
  /** See `validationErrors`. */
  readonly allowsReservedNames?: boolean;
  /** Finds the fields of an operation that need scopes. Default: no field does. */
  readonly scopedUses?: (
    document: DocumentNode,
    operation: OperationDefinitionNode,
  ) => readonly ScopedUse[];
  readonly compile?: (operation: Omit<CheckedOperation, 'plan'>) => Plan;
}

export interface Operations<Plan = unknown> {
  /** @throws GraphQLError for a text that does not parse, or a name without an operation in it */
  find(text: string, operationName: unknown): CheckedOperation<Plan>;
  /** Does the same for a document. */
  findDocument(document: DocumentNode, operationName: unknown): CheckedOperation<Plan>;
}

/** The number of documents that are kept, and that of their characters. A document can take 250 bytes a character. */
const KEPT = { max: 1_000, maxSize: 500_000 };

/** Keeps checked operations by their text. A text that does not parse is not kept. */
export function createOperations<Plan>(rules: OperationRules<Plan>): Operations<Plan> {
  const parse = parseWithin(rules.maxTokens);
  const documents = new LRUCache<string, CheckedDocument<Plan>>({
    ...KEPT,
    sizeCalculation: (_, text) => text.length,
  });
  const texts = new WeakMap<DocumentNode, string>();
  const find = (text: string, operationName: unknown) => {
    let document = documents.get(text);
    if (!document) {
      document = new CheckedDocument(parse(text), rules);
      documents.set(text, document);
      texts.set(document.node, text);
    }
    return document.select(operationName);
  };
  return {
    find,
    findDocument: (document, operationName) => {
      const text = texts.get(document) ?? print(document);
      texts.set(document, text);
      return find(text, operationName);
    },
  };
}

/**
 * One operation of a document, with everything that depends on neither its variables nor its caller. It is made once
 * and kept, so a request with a known text is not parsed, visited or validated again.
 */
export class CheckedOperation<Plan = unknown> {
  readonly document: DocumentNode;
  /** The definition that `operationName` selects. */
  readonly operation: OperationDefinitionNode;
  readonly type: OperationTypeNode;
  /** Whether the document has a `@stream`. */
  readonly isIncremental: boolean;
  /** The limits that the document exceeds. */
  readonly excess: readonly Excess[] | 'broken';
  readonly #of: CheckedDocument<Plan>;
  #routerFields: readonly string[] | undefined;
  #scopedUses: readonly ScopedUse[] | undefined;
  #plan: Plan | undefined;

  constructor(operation: OperationDefinitionNode, of: CheckedDocument<Plan>) {
    this.document = of.node;
    this.operation = operation;
    this.type = operation.operation;
    this.isIncremental = of.isIncremental;
    this.excess = of.excess;
    this.#of = of;
  }

  get name(): string | undefined {
    return this.operation.name?.value;
  }

  /** The fields for routers (`_service` and `_entities`) that it selects. */
  get routerFields(): readonly string[] {
    return (this.#routerFields ??= findRouterFields(this, this.#of.rules.schema));
  }

  /** The fields that need scopes, of an operation that is valid. */
  get scopedUses(): readonly ScopedUse[] {
    const { scopedUses } = this.#of.rules;
    return (this.#scopedUses ??= scopedUses?.(this.document, this.operation) ?? []);
  }

  /**
   * Returns the validation errors of the document, for one reply: a status and a code are written into their
   * extensions. Read `excess` first: a hostile document can make validation expensive.
   */
  errors(): readonly GraphQLError[] {
    return this.#of.errors();
  }

  /** The result of `compile`, called on first use. An error that it throws is not kept. */
  get plan(): Plan {
    return (this.#plan ??= this.#of.rules.compile!(this));
  }
}

class CheckedDocument<Plan> {
  readonly node: DocumentNode;
  readonly rules: OperationRules<Plan>;
  readonly isIncremental: boolean;
  readonly excess: readonly Excess[] | 'broken';
  readonly #operations: readonly CheckedOperation<Plan>[];
  #isValid = false;

  constructor(node: DocumentNode, rules: OperationRules<Plan>) {
    this.node = node;
    this.rules = rules;
    this.isIncremental = hasIncremental(node);
    this.excess = excessOf(node, rules);
    this.#operations = node.definitions
      .filter((definition) => definition.kind === Kind.OPERATION_DEFINITION)
      .map((definition) => new CheckedOperation(definition, this));
  }

  select(operationName: unknown): CheckedOperation<Plan> {
    const [only, ...others] = this.#operations;
    const isOpen = operationName === undefined || operationName === null;
    const named = this.#operations.findLast(({ name }) => name === operationName);
    const selected = isOpen && others.length === 0 ? only : named;
    if (selected) return selected;
    const names = this.#operations.map(({ name }) => name ?? 'one without a name');
    throw badRequest(
      `Say with operationName which operation to run; there is ${names.join(', ') || 'none'}.`,
    );
  }

  /** Errors are not kept: each has a stack, and whoever gets one may change it. */
  errors(): readonly GraphQLError[] {
    if (this.#isValid) return NONE;
    const hasBrokenFragments = this.excess === 'broken';
    const errors = validationErrors(this.node, { ...this.rules, hasBrokenFragments });
    this.#isValid = errors.length === 0;
    return errors;
  }
}

const NONE: readonly GraphQLError[] = [];

/** Finds the fields for routers that an operation selects, under any alias: a schema may lead back to the root type. */
function findRouterFields(
  { document, operation }: CheckedOperation,
  schema: GraphQLSchema,
): readonly string[] {
  const root = schema.getQueryType();
  const fields = new Set<string>();
  visitFields(schema, onlyOperation(document, operation).document, ({ name }, parent) => {
    const isForRouters = name.value === '_service' || name.value === '_entities';
    if (isForRouters && parent === root) fields.add(name.value);
  });
  return [...fields];
}
