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
import type { NamedDocument, ScopedUse } from '../schema/field-scopes.ts';
import { onlyOperation, visitFields } from '../schema/selections.ts';
import { excessOf, parseWithin, sizeOf, type Limits, type Size } from './limits.ts';
import { validationErrors, type ValidationRules } from './validation.ts';

interface OperationRules<Plan> extends Limits, ValidationRules {
  /** Finds the fields of an operation that need scopes. Default: no field does. */
  readonly scopedUses?: (operation: NamedDocument) => readonly ScopedUse[];
  readonly compile?: (operation: Omit<CheckedOperation, 'plan'>) => Plan;
}

export interface Operations<Plan = unknown> {
  /** @throws GraphQLError for a text that does not parse, or a name without an operation in it */
  find(text: string, operationName: unknown): CheckedOperation<Plan>;
  /** Whether the text was found before and is still kept. */
  isKept(text: string): boolean;
  /** Does the same for a document. */
  findDocument(document: DocumentNode, operationName: unknown): CheckedOperation<Plan>;
}

/** The number of documents that are kept, and that of their characters. A document can take 250 bytes a character. */
const KEPT = { max: 1_000, maxSize: 500_000 };

/** Keeps checked operations by their text. A text that does not parse is not kept. */
export function createOperations<Plan>(rules: OperationRules<Plan>): Operations<Plan> {
  const parse = parseWithin(rules.maxTokens);
  const kept = new LRUCache<string, readonly CheckedOperation<Plan>[]>({
    ...KEPT,
    sizeCalculation: (_, text) => text.length,
  });
  const texts = new WeakMap<DocumentNode, string>();
  const find = (text: string, operationName: unknown) => {
    let operations = kept.get(text);
    if (!operations) {
      const document = parse(text);
      const size = sizeOf(document);
      operations = document.definitions
        .filter((definition) => definition.kind === Kind.OPERATION_DEFINITION)
        .map((operation) => new CheckedOperation({ document, operation }, rules, size));
      kept.set(text, operations);
      texts.set(document, text);
    }
    return selected(operations, operationName);
  };
  return {
    find,
    isKept: (text) => kept.has(text),
    findDocument: (document, operationName) => {
      const text = texts.get(document) ?? print(document);
      texts.set(document, text);
      return find(text, operationName);
    },
  };
}

function selected<Plan>(
  operations: readonly CheckedOperation<Plan>[],
  operationName: unknown,
): CheckedOperation<Plan> {
  const isOpen = operationName === undefined || operationName === null;
  const named = operations.findLast(({ name }) => name === operationName);
  const found = isOpen && operations.length === 1 ? operations[0] : named;
  if (found) return found;
  const names = operations.map(({ name }) => name ?? 'one without a name');
  throw badRequest(
    `Say with operationName which operation to run; there is ${names.join(', ') || 'none'}.`,
  );
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
  readonly #rules: OperationRules<Plan>;
  /** That of the whole document. */
  readonly #size: Size;
  #isValid = false;
  #routerFields: readonly string[] | undefined;
  #scopedUses: readonly ScopedUse[] | undefined;
  #plan: Plan | undefined;

  constructor({ document, operation }: NamedDocument, rules: OperationRules<Plan>, size: Size) {
    this.document = document;
    this.operation = operation;
    this.type = operation.operation;
    this.#rules = rules;
    this.#size = size;
  }

  get name(): string | undefined {
    return this.operation.name?.value;
  }

  /** Returns the limits that the document exceeds: see `excessOf`. */
  excess(isRouter: boolean): readonly string[] {
    return excessOf(this.#size, this.#rules, isRouter);
  }

  /** The fields for routers that it selects, `_service` and `_entities`: a type may lead back to the root. */
  get routerFields(): readonly string[] {
    return (this.#routerFields ??= routerFieldsOf(this, this.#rules.schema));
  }

  /** The fields that need scopes, of an operation that is valid. */
  get scopedUses(): readonly ScopedUse[] {
    return (this.#scopedUses ??= this.#rules.scopedUses?.(this) ?? []);
  }

  /**
   * Returns the validation errors of the document, for one reply: a status and a code are written into their
   * extensions. Read `excess` first: a hostile document can make validation expensive.
   */
  errors(): readonly GraphQLError[] {
    if (this.#isValid) return [];
    const errors = validationErrors(this.document, this.#rules);
    this.#isValid = errors.length === 0;
    return errors;
  }

  /** The result of `compile`, called on first use. An error that it throws is not kept. */
  get plan(): Plan {
    return (this.#plan ??= this.#rules.compile!(this));
  }
}

/** A service may have fields of these names in other types than the root. */
function routerFieldsOf(
  { document, operation }: CheckedOperation,
  schema: GraphQLSchema,
): readonly string[] {
  const fields = new Set<string>();
  visitFields(schema, onlyOperation(document, operation).document, ({ name }, parent) => {
    if (parent === schema.getQueryType()) fields.add(name.value);
  });
  return ['_service', '_entities'].filter((name) => fields.has(name));
}
