import {
  Kind,
  print,
  TokenKind,
  visit,
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type OperationTypeNode,
  type Source,
  isAbstractType,
  type GraphQLCompositeType,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import { badRequest } from '../errors.ts';
import type { RequestMemory } from '../memory/byte-limit.ts';
import type { ScopedUse } from '../schema/field-scopes.ts';
import { onlyOperation, visitFields } from '../selections.ts';
import { excessOf, parseWithin, type Excess, type Limits } from './limits.ts';
import { validationErrors } from './validation.ts';

interface OperationRules<Plan> extends Limits {
  /** The served schema. */
  readonly schema: GraphQLSchema;
  /** If false, `errors` has an error for each introspection field, and messages suggest no names. */
  readonly introspection: boolean;
  /** See `validationErrors`. */
  readonly allowsReservedNames?: boolean;
  /** Bytes of memory that all kept documents may take, with their errors and plans. */
  readonly maxBytes: number;
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

/**
 * Keeps checked operations by their text, up to a number of bytes of memory: a text of 20 characters can take 3 KB or,
 * with its plan, 50 KB, and one of 100 KB hardly more than its characters. A text that does not parse is not kept.
 */
export function createOperations<Plan>(rules: OperationRules<Plan>): Operations<Plan> {
  const parse = parseWithin(rules.maxTokens);
  const documents = new LRUCache<string, CheckedDocument<Plan>>({
    maxSize: rules.maxBytes,
    sizeCalculation: ({ bytes }) => bytes,
  });
  /** Drops the least recently used documents; the document itself if it is too large. */
  const keep = (text: string, document: CheckedDocument<Plan>) => {
    // The cache does not recalculate the size of a value that it already holds.
    documents.delete(text);
    documents.set(text, document);
  };
  const texts = new WeakMap<DocumentNode, string>();
  const find = (text: string, operationName: unknown) => {
    let document = documents.get(text);
    if (!document) {
      const key = copyOf(text);
      const made = new CheckedDocument(parse(key), rules, () => {
        if (documents.peek(key) === made) keep(key, made);
      });
      keep(key, made);
      document = made;
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

/** A substring of an address, as `slice` returns it, keeps the whole address alive. */
function copyOf(text: string): string {
  return JSON.parse(JSON.stringify(text)) as string;
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
  #plan: { readonly made: Plan } | undefined;

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

  /** The fields for routers (`_service` and `_entities`) that it selects on the query root. */
  get routerFields(): readonly string[] {
    const { schema } = this.#of.rules;
    return (this.#routerFields ??= findRouterFields(schema, this.document, this.operation));
  }

  /** The fields that need scopes, of an operation that is valid. */
  get scopedUses(): readonly ScopedUse[] {
    const { scopedUses } = this.#of.rules;
    return (this.#scopedUses ??= scopedUses?.(this.document, this.operation) ?? []);
  }

  /**
   * Counts the document with its plans as memory of requests, once for all concurrent users: it is in memory for them
   * even if the cache has dropped it.
   *
   * @returns whether the request may continue; call `release` in any case
   */
  use(memory: RequestMemory): boolean {
    return this.#of.use(memory);
  }

  /** Call it when a request that used this is over. */
  release(): void {
    this.#of.release();
  }

  /**
   * Creates the validation errors of the document, for one reply: a status and a code are written into their
   * extensions. Read `excess` first: a hostile document can make validation expensive.
   */
  errors(): readonly GraphQLError[] {
    return this.#of.errors();
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
  readonly excess: readonly Excess[] | 'broken';
  readonly #operations: readonly CheckedOperation<Plan>[];
  readonly #onGrown: () => void;
  #bytes: number;
  #errors: KeptErrors | undefined;
  #users = 0;
  #usedMemory: RequestMemory | undefined;

  constructor(node: DocumentNode, rules: OperationRules<Plan>, onGrown: () => void) {
    this.node = node;
    this.rules = rules;
    this.isIncremental = hasIncremental(node);
    this.excess = excessOf(node, rules);
    const operations = node.definitions.filter(
      (definition) => definition.kind === Kind.OPERATION_DEFINITION,
    );
    this.#operations = operations.map((definition) => new CheckedOperation(definition, this));
    this.#onGrown = onGrown;
    this.#bytes =
      BYTES_OF_DOCUMENT +
      BYTES_OF_OPERATION * operations.length +
      BYTES_OF_TOKEN * unlinkTokens(node) +
      textBytes(node.loc!.source.body) +
      (this.excess === 'broken'
        ? 0
        : this.excess.reduce((sum, { message }) => sum + textBytes(message), 0));
  }

  /** Bytes of memory, estimated. */
  get bytes(): number {
    return this.#bytes;
  }

  use(memory: RequestMemory): boolean {
    this.#users += 1;
    if (this.#users > 1) return true;
    this.#usedMemory = memory;
    return memory.add(this.#bytes, this.#bytes);
  }

  release(): void {
    this.#users -= 1;
    if (this.#users > 0) return;
    this.#usedMemory?.remove(this.#bytes);
    this.#usedMemory = undefined;
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
    const named = this.#operations.findLast(({ name }) => name === operationName);
    if (named) return named;
    throw badRequest(
      `There is no operation named "${operationName}" in this document; there is ${this.#listed()}.`,
    );
  }

  errors(): readonly GraphQLError[] {
    return (this.#errors ??= this.#validate()).made();
  }

  #validate(): KeptErrors {
    const errors = validationErrors(this.node, {
      ...this.rules,
      hasBrokenFragments: this.excess === 'broken',
      hideSuggestions: !this.rules.introspection,
    });
    const kept = new KeptErrors(errors, this.node.loc!.source);
    if (kept.bytes > 0) this.#grow(kept.bytes);
    return kept;
  }

  #grow(bytes: number): void {
    this.#bytes += bytes;
    this.#usedMemory?.add(bytes, this.#bytes);
    this.#onGrown();
  }

  #listed(): string {
    const names = this.#operations.map(({ name }) => name ?? 'one without a name');
    return names.join(', ') || 'none';
  }
}

/*
 * Bytes of memory, measured as the growth of the heap with thousands of documents of one kind. They are rounded up: no
 * kind takes more than this says, and most take two thirds of it.
 */
const BYTES_OF_DOCUMENT = 2_000;
const BYTES_OF_OPERATION = 600;
/** With the nodes that are created from it. */
const BYTES_OF_TOKEN = 500;

/**
 * Unlinks the tokens of a document, which are linked from the first to the last: its nodes refer to a few of them,
 * which would keep all others alive, and all comments.
 *
 * @returns the number of tokens, without comments
 */
function unlinkTokens({ loc }: DocumentNode): number {
  let count = 0;
  for (let token = loc?.startToken ?? null; token;) {
    const { next, kind } = token;
    if (kind !== TokenKind.COMMENT) count += 1;
    Object.assign(token, { prev: null, next: null });
    token = next;
  }
  return count;
}

function hasIncremental(document: DocumentNode): boolean {
  let isIncremental = false;
  visit(document, {
    Directive: ({ name }) => {
      if (name.value === 'stream') isIncremental = true;
    },
  });
  return isIncremental;
}

/** Errors of a document, kept without their stacks: an unread stack keeps about 60 KB alive. */
class KeptErrors {
  /** Bytes of memory, estimated. */
  readonly bytes: number;
  readonly #errors: readonly Pick<GraphQLError, 'message' | 'positions' | 'extensions'>[];
  readonly #source: Source;

  constructor(errors: readonly GraphQLError[], source: Source) {
    this.#errors = errors.map(({ message, positions, extensions }) => ({
      message,
      positions,
      extensions,
    }));
    this.#source = source;
    this.bytes = this.#errors.reduce(
      (sum, { message, positions = [] }) =>
        sum + BYTES_OF_ERROR + textBytes(message) + 16 * positions.length,
      0,
    );
  }

  /** Creates the errors again, each time new ones: their receiver may change them. */
  made(): readonly GraphQLError[] {
    if (this.#errors.length === 0) return NONE;
    const source = this.#source;
    return this.#errors.map(
      ({ message, positions, extensions }) =>
        new GraphQLError(message, { source, positions, extensions: { ...extensions } }),
    );
  }
}

const NONE: readonly GraphQLError[] = [];
const BYTES_OF_ERROR = 400;

/** Bytes of a text, of which each character may be beyond Latin-1. */
function textBytes(text: string): number {
  return 2 * text.length;
}

/** Finds the fields for routers that an operation selects on the query root, at any depth and under any alias. */
function findRouterFields(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): readonly string[] {
  // Most documents contain none of these names, and a name has only one spelling.
  const text = document.loc?.source.body;
  if (text !== undefined && !ROUTER_FIELDS.some((name) => text.includes(name))) return [];
  const fields = new Set<string>();
  visitFields(
    schema,
    onlyOperation(document, operation).document,
    ({ name: { value } }, parent) => {
      if (ROUTER_FIELDS.includes(value) && isRoot(parent, schema)) fields.add(value);
    },
  );
  return [...fields];
}

const ROUTER_FIELDS = ['_service', '_entities'];

function isRoot(type: GraphQLCompositeType, schema: GraphQLSchema): boolean {
  const root = schema.getQueryType()!;
  return type === root || (isAbstractType(type) && schema.isSubType(type, root));
}
