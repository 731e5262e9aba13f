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
import { ForwardedFields, type Forwarded } from './forwarded.ts';
import { ListField } from './list-field.ts';
import { isLocal, localFields } from './local-fields.ts';
import { sentOperation, type SentOperation } from './operation.ts';
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

/** A root field that the gateway answers by requests of its own. */
interface OwnField {
  answer(call: Call): Promise<FieldValue>;
}

/** Compiles an operation, which is valid. @throws BAD_USER_INPUT, FORBIDDEN */
export function compile(
  shared: Shared,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): Plan {
  return new OperationPlan(shared, sentOperation(shared.rules, document, operation), {
    document,
    operation,
  });
}

class OperationPlan implements Plan {
  readonly #shared: Shared;
  readonly #isMutation: boolean;
  readonly #selected: readonly SelectedField[];
  readonly #own: ReadonlyMap<string, OwnField>;
  readonly #forwarded: ForwardedFields | undefined;
  readonly #local: ReturnType<typeof localFields> | undefined;
  readonly #streams: ReturnType<typeof streamedLists>;
  readonly #rootName: string;

  constructor(
    shared: Shared,
    sent: SentOperation,
    written: { readonly document: DocumentNode; readonly operation: OperationDefinitionNode },
  ) {
    const { definition, fragments } = sent;
    const root = shared.schema.getRootType(definition.operation)!;
    this.#shared = shared;
    this.#rootName = root.name;
    this.#isMutation = definition.operation === OperationTypeNode.MUTATION;
    this.#selected = selectedFields(definition.selectionSet, fragments);
    const own = new Map<string, OwnField>();
    for (const field of this.#selected) {
      const made = ownField(shared, sent, field);
      if (made) own.set(field.key, made);
    }
    this.#own = own;
    const forwarded = this.#selected.filter(
      ({ key, name }) => !own.has(key) && name !== '__typename' && !isLocal(name),
    );
    this.#forwarded =
      forwarded.length > 0
        ? new ForwardedFields(shared, sent, root, this.#selected, forwarded)
        : undefined;
    this.#local = this.#selected.some(({ name }) => isLocal(name))
      ? localFields(shared.offered, sent, this.#selected)
      : undefined;
    this.#streams = streamedLists(written, own);
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
    if (this.#isMutation) return undefined;
    const selected = new Set(
      selectedNow(this.#selected, call.variables.values).map(({ key }) => key),
    );
    const streams = this.#streams(call).filter(({ list }) => selected.has(list.key));
    if (streams.length === 0) return undefined;
    const streamed = new Set(streams.map(({ list }) => list.key));
    return streamOperation(streams, call, () => this.#answer(call, streamed));
  }

  /** @param streamed the keys of lists whose records are sent later: they are empty here */
  async #answer(call: Call, streamed?: ReadonlySet<string>): Promise<Answer> {
    const { values } = call.variables;
    const selected = selectedNow(this.#selected, values);
    const own = selected.flatMap(({ key }) => {
      const field = this.#own.get(key);
      return field && !streamed?.has(key) ? [{ key, value: field.answer(call) }] : [];
    });
    const forwarded = this.#forwarded?.isSelected(values)
      ? this.#forwarded.answer(call)
      : undefined;
    if (own.length === 0 && !this.#local && !streamed && forwarded) {
      const service = await forwarded;
      return service.isExecuted ? service : this.#joined(call, selected, service, new Map());
    }
    const [service, ...ownValues] = await Promise.all([
      forwarded,
      ...own.map(({ value }) => value),
    ]);
    const ofKey = new Map(own.map(({ key }, at) => [key, ownValues[at]!]));
    return this.#joined(call, selected, service, ofKey, streamed);
  }

  #joined(
    call: Call,
    selected: readonly SelectedField[],
    service: Forwarded | undefined,
    own: ReadonlyMap<string, FieldValue>,
    streamed: ReadonlySet<string> = new Set(),
  ): Answer {
    const local = this.#local?.(call);
    const errors: AnswerError[] = [...(service?.errors ?? [])];
    const data: Record<string, unknown> = {};
    let isNull = service?.isNull ?? false;
    for (const { key, name } of selected) {
      const value = own.get(key);
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

function ownField(shared: Shared, sent: SentOperation, field: SelectedField): OwnField | undefined {
  const derived =
    sent.definition.operation === OperationTypeNode.QUERY
      ? shared.rules.derived.get(field.name)
      : undefined;
  switch (derived?.kind) {
    case 'all':
    case 'connection':
      return new ListField(shared, sent, derived, field);
    case 'record':
      return new RecordField(shared, sent, derived.entity, field);
    case 'entities':
      return new EntitiesField(shared, sent, derived.entities, field);
    default:
      return undefined;
  }
}

function isRequired({ schema }: Shared, field: string): boolean {
  const definition = schema.getQueryType()!.getFields()[field];
  return definition !== undefined && isNonNullType(definition.type);
}
