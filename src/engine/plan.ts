import {
  isNonNullType,
  OperationTypeNode,
  type DocumentNode,
  type OperationDefinitionNode,
} from 'graphql';
import { streamAt } from '../schema/incremental-directives.ts';
import { errorsBelow, type Answer, type AnswerError, type FieldValue } from './answer.ts';
import type { Call, CallVariables } from './call.ts';
import { entitiesField, recordField } from './entities.ts';
import { forwardedFields } from './forwarded.ts';
import { ListField } from './list-field.ts';
import { isLocal, localFields } from './local-fields.ts';
import { prepareOperation, type PreparedOperation } from './prepared-operation.ts';
import { selectedFields, selectedNow, type SelectedField } from './selected-fields.ts';
import { failed } from './service-answer.ts';
import type { Shared } from './shared.ts';
import { streamOperation, type Payload } from './stream.ts';

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
  const { definition, fragments } = prepared;
  const root = shared.schema.getRootType(definition.operation)!;
  const fields = selectedFields(definition.selectionSet, fragments);
  const derived = new Map<string, DerivedRoot>();
  for (const field of fields) {
    const made = derivedRoot(shared, prepared, field);
    if (made) derived.set(field.key, made);
  }
  const local = localFields(shared, prepared, fields);
  const ofService = fields.filter(
    ({ key, name }) => !derived.has(key) && name !== '__typename' && !isLocal(name),
  );
  // Beside derived fields, skipped or not, its `__typename` is not requested.
  const isWhole = derived.size === 0 && !local;
  const forward =
    ofService.length > 0 ? forwardedFields(shared, prepared, root, ofService, isWhole) : undefined;

  /** Where a `@stream` has an effect: not on a connection. */
  const streamable = fields.flatMap((field) => {
    const list = derived.get(field.key);
    const isDrain = shared.derived.get(`${root.name}.${field.name}`)?.kind === 'all';
    return isDrain && list instanceof ListField ? [{ ...field, list }] : [];
  });

  /** @param streamed the keys of lists whose records are sent later: they are empty here */
  const answer = async (call: Call, streamed?: ReadonlySet<string>): Promise<Answer> => {
    const selected = selectedNow(fields, call.variables.values);
    const running = new Map(
      selected.flatMap(({ key }) => {
        const field = derived.get(key);
        return field && !streamed?.has(key) ? [[key, field.answer(call).catch(failed)]] : [];
      }),
    );
    const first = selected.find((field) => ofService.includes(field));
    let service: Answer | undefined;
    try {
      service = first && (await forward?.(call));
      if (isWhole && service) return service;
    } catch (thrown) {
      // The request failed: the error is reported once, at the first field.
      service = { data: {}, errors: errorsBelow([first!.key], failed(thrown).errors) };
    }
    const locals = local?.(call);
    const errors: AnswerError[] = [...(service?.errors ?? [])];
    const data: Record<string, unknown> = {};
    let isNull = service?.data === null;
    for (const { key, name } of selected) {
      const value = await running.get(key);
      if (value) {
        errors.push(...errorsBelow([key], value.errors));
        data[key] = value.value;
      } else if (streamed?.has(key)) data[key] = [];
      else if (name === '__typename') data[key] = root.name;
      else data[key] = locals?.[key] ?? service?.data?.[key] ?? null;
      isNull ||= data[key] === null && isNonNullType(root.getFields()[name]?.type);
    }
    return { data: isNull ? null : data, errors, extensions: service?.extensions };
  };

  return {
    answer: (call) => {
      const isMutation = definition.operation === OperationTypeNode.MUTATION;
      return isMutation ? separately(shared.lists, () => answer(call)) : answer(call);
    },
    stream: (call) => {
      const streams = streamsIn(streamable, call.variables.values);
      if (streams.length === 0) return undefined;
      const streamed = new Set(streams.map(({ list }) => list.key));
      return streamOperation(streams, call, () => answer(call, streamed));
    },
  };
}

/** Lets a mutation, and what begins after it, share no walk with what began before it, or during it. */
async function separately<T>(
  { walks, known }: Shared['lists'],
  mutate: () => Promise<T>,
): Promise<T> {
  walks.separate();
  try {
    return await mutate();
  } finally {
    walks.separate();
    known.forget();
  }
}

interface StreamableField extends SelectedField {
  readonly list: ListField;
}

function streamsIn(fields: readonly StreamableField[], values: CallVariables['values']) {
  return selectedNow(fields, values).flatMap(({ list, uses }) => {
    const stream = uses.map(({ node }) => streamAt(node, values)).find((each) => each);
    return stream ? [{ list, ...stream }] : [];
  });
}

/** @returns null for a field of the service, and for a local one */
function derivedRoot(
  shared: Shared,
  prepared: PreparedOperation,
  field: SelectedField,
): DerivedRoot | null {
  if (prepared.definition.operation !== OperationTypeNode.QUERY) return null;
  const derived = shared.derived.get(`${shared.schema.getQueryType()!.name}.${field.name}`);
  // Without a default, a new kind does not compile until it is here.
  switch (derived?.kind) {
    case 'all':
    case 'connection':
      return new ListField(shared, prepared, derived, field);
    case 'record':
      return { answer: recordField(shared, prepared, derived.entity, field) };
    case 'entities':
      return { answer: entitiesField(shared, prepared, derived.entities, field) };
    case 'service':
    case undefined:
      return null;
  }
}
