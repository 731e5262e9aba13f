import {
  isNonNullType,
  OperationTypeNode,
  type DocumentNode,
  type OperationDefinitionNode,
} from 'graphql';
import type { Answer, AnswerError, FieldValue } from './answer.ts';
import type { Call } from './call.ts';
import type { Shared } from './shared.ts';
import { EntitiesField, RecordField } from './entities.ts';
import { ForwardedFields } from './forwarded.ts';
import { ListField } from './list-field.ts';
import { isLocal, localFields } from './local-fields.ts';
import { prepareOperation, type PreparedOperation } from './prepared-operation.ts';
import { selectedFields, selectedNow, type SelectedField } from './selected-fields.ts';
import { streamedLists, streamOperation, type Payload } from './stream.ts';

/*
 * How an operation is compiled once and answered as plain objects and texts
 *
 *                        root fields of the operation
 *          ┌────────────────────┼────────────────────────────┐
 *     of the service         derived                       local
 *     one request, as        lists, records,               __schema, __type,
 *     the caller wrote it    entities: programs            _service: graphql-js
 *     (forwarded.ts)         over paging                   (local-fields.ts)
 *
 * The service is a GraphQL server with the same schema: what it answers to fields that were sent as the caller wrote
 * them is the answer, with its errors, nulls and order of keys. It is not looked at value by value, except where a type
 * has another name here or a nested list belongs (mend.ts).
 */

/** A compiled operation: made once, answered in every call. */
export interface Plan {
  /** Answers in one piece. */
  answer(call: Call): Promise<Answer>;
  /** Answers in the parts that `@stream` asks for; undefined if it asks for none in this call. */
  stream(call: Call): AsyncGenerator<Payload, void, undefined> | undefined;
}

/** A derived field of the root: the gateway answers it by other requests than the caller's. */
interface DerivedRoot {
  answer(call: Call): Promise<FieldValue>;
}

/** Compiles an operation, which is valid. @throws BAD_USER_INPUT, FORBIDDEN */
export function compile(
  shared: Shared,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): Plan {
  const prepared: PreparedOperation = {
    ...prepareOperation(shared, document, operation),
    compileNested: (derived, field) => new ListField(shared, prepared, derived, field),
  };
  return new OperationPlan(shared, prepared);
}

class OperationPlan implements Plan {
  readonly #shared: Shared;
  readonly #isMutation: boolean;
  readonly #selected: readonly SelectedField[];
  /** By their keys. */
  readonly #derived: ReadonlyMap<string, DerivedRoot>;
  readonly #forwarded: ForwardedFields | undefined;
  readonly #local: ReturnType<typeof localFields> | undefined;
  readonly #rootName: string;

  constructor(shared: Shared, prepared: PreparedOperation) {
    const { definition, fragments } = prepared;
    const root = shared.schema.getRootType(definition.operation)!;
    this.#shared = shared;
    this.#rootName = root.name;
    this.#isMutation = definition.operation === OperationTypeNode.MUTATION;
    this.#selected = selectedFields(definition.selectionSet, fragments);
    const derived = new Map<string, DerivedRoot>();
    for (const field of this.#selected) {
      const made = derivedRoot(shared, prepared, field);
      if (made) derived.set(field.key, made);
    }
    this.#derived = derived;
    const forwarded = this.#selected.filter(
      ({ key, name }) => !derived.has(key) && name !== '__typename' && !isLocal(name),
    );
    this.#forwarded =
      forwarded.length > 0
        ? new ForwardedFields(shared, prepared, root, this.#selected, forwarded)
        : undefined;
    this.#local = this.#selected.some(({ name }) => isLocal(name))
      ? localFields(shared.offered, prepared, this.#selected)
      : undefined;
  }

  async answer(call: Call): Promise<Answer> {
    if (!this.#isMutation) return this.#answer(call);
    const { lists } = this.#shared;
    lists.separate();
    try {
      return await this.#answer(call);
    } finally {
      lists.forget();
    }
  }

  stream(call: Call): AsyncGenerator<Payload, void, undefined> | undefined {
    const selected = selectedNow(this.#selected, call.variables.values);
    const streams = streamedLists(selected, this.#derived, call);
    if (streams.length === 0) return undefined;
    const streamed = new Set(streams.map(({ list }) => list.key));
    return streamOperation(streams, call, () => this.#answer(call, streamed));
  }

  /** @param streamed the keys of lists whose records are sent later: they are empty here */
  async #answer(call: Call, streamed?: ReadonlySet<string>): Promise<Answer> {
    const { values } = call.variables;
    const selected = selectedNow(this.#selected, values);
    const derived = selected.flatMap(({ key }) => {
      const field = this.#derived.get(key);
      return field && !streamed?.has(key) ? [{ key, value: field.answer(call) }] : [];
    });
    const forwarded = this.#forwarded?.isSelected(values)
      ? this.#forwarded.answer(call)
      : undefined;
    // Beside derived fields, skipped or not, its `__typename` is not requested.
    if (this.#derived.size === 0 && !this.#local && forwarded) return forwarded;
    const [service, ...derivedValues] = await Promise.all([
      forwarded,
      ...derived.map(({ value }) => value),
    ]);
    const ofKey = new Map(derived.map(({ key }, at) => [key, derivedValues[at]!]));
    return this.#joined(call, selected, service, ofKey, streamed);
  }

  /** Joins the values of the root fields in the order of the operation. */
  #joined(
    call: Call,
    selected: readonly SelectedField[],
    service: Answer | undefined,
    derived: ReadonlyMap<string, FieldValue>,
    streamed: ReadonlySet<string> = new Set(),
  ): Answer {
    const local = this.#local?.(call);
    const errors: AnswerError[] = [...(service?.errors ?? [])];
    const data: Record<string, unknown> = {};
    let isNull = service?.data === null;
    for (const { key, name } of selected) {
      const value = derived.get(key);
      if (value) {
        errors.push(...value.errors);
        data[key] = value.value;
        isNull ||= value.value === null && isRequired(this.#shared, name);
      } else if (streamed.has(key)) data[key] = [];
      else if (isLocal(name)) data[key] = local?.[key];
      else if (name === '__typename') data[key] = this.#rootName;
      else data[key] = service?.data?.[key] ?? null;
    }
    return { data: isNull ? null : data, errors, extensions: service?.extensions };
  }
}

/** @returns null for a field of the service, and for a local one */
function derivedRoot(
  shared: Shared,
  prepared: PreparedOperation,
  field: SelectedField,
): DerivedRoot | null {
  const { operation } = prepared.definition;
  const derived =
    operation === OperationTypeNode.QUERY
      ? shared.derived.get(`${shared.schema.getQueryType()!.name}.${field.name}`)
      : undefined;
  if (!derived) return null;
  // Without a default, a new kind does not compile until it is here.
  switch (derived.kind) {
    case 'all':
    case 'connection':
      return new ListField(shared, prepared, derived, field);
    case 'record':
      return new RecordField(shared, prepared, derived.entity, field);
    case 'entities':
      return new EntitiesField(shared, prepared, derived.entities, field);
    case 'service':
      return null;
  }
}

function isRequired({ schema }: Shared, field: string): boolean {
  const definition = schema.getQueryType()!.getFields()[field];
  return definition !== undefined && isNonNullType(definition.type);
}
