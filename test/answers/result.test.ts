// Imports the engine's insides, and goes when the engine is replaced.
import { GraphQLError } from 'graphql';
import { describe, expect, test } from 'vitest';
import type { AnswerError } from '../../src/answers/answer-errors.ts';
import {
  createPayload,
  createResult,
  httpOf,
  writeResult,
  type PayloadResult,
} from '../../src/answers/result.ts';
import {
  writeAnswer,
  writePayload,
  type Payload,
  type PendingPart,
  type WholeAnswer,
} from '../../src/answers/write-answer.ts';

const mask = (error: unknown): Error =>
  error instanceof GraphQLError && !isUnexpected(error)
    ? error
    : new GraphQLError('masked', { extensions: { code: 'INTERNAL_SERVER_ERROR' } });

const isUnexpected = ({ originalError }: GraphQLError): boolean =>
  originalError instanceof GraphQLError ? isUnexpected(originalError) : Boolean(originalError);

/** JavaScript cannot hold these numbers, and writes keys like "2" before others. */
const EXACT = '"person":{"n":12345678901234567890,"z":1.50,"b":1,"2":[-0,1e400]},"é":"\\u00e9"';

const SERVICE_ERROR: AnswerError = {
  message: 'no such field',
  path: ['person', 'n'],
  members:
    '"locations":[{"line":1,"column":2}],"extensions":{"code":"X","cost":1.50,"http":{"status":503}},"type":"T"',
  code: 'X',
  order: 0,
};
const cause = new Error('password=hunter2');
const THROWN: AnswerError = { thrown: cause, path: ['person'] };
const CODED: AnswerError = {
  thrown: new GraphQLError('too much', { extensions: { code: 'DRAIN_LIMIT_EXCEEDED' } }),
  path: ['allPersons'],
};

function answer(parts: Partial<WholeAnswer> = {}): WholeAnswer {
  return {
    data: [Buffer.from(EXACT.slice(0, 9)), EXACT.slice(9)],
    errors: [],
    extensions: undefined,
    ...parts,
  };
}

const FULL = answer({
  errors: [SERVICE_ERROR, THROWN, CODED],
  extensions: '{"trace":1.50,"http":{"status":500}}',
});

const written = (result: object) =>
  Buffer.concat(writeResult(result, mask).map((piece) => Buffer.from(piece))).toString();
const asWritten = (whole: WholeAnswer) =>
  writeAnswer(whole, mask)
    .map((piece) => piece.toString())
    .join('');

describe('the result of an answer', () => {
  test.each([
    ['data', answer(), ['data']],
    ['data and errors', answer({ errors: [THROWN] }), ['data', 'errors']],
    ['everything', FULL, ['data', 'errors', 'extensions']],
    ['null data', answer({ data: null, errors: [CODED] }), ['data', 'errors']],
    ['only errors', answer({ data: undefined, errors: [CODED] }), ['errors']],
  ])('with %s has exactly these members, and is written as its bytes', (_, whole, names) => {
    const result = createResult(whole);
    expect(Object.keys(result)).toEqual(names);
    expect('errors' in result).toBe(names.includes('errors'));
    expect('extensions' in result).toBe(names.includes('extensions'));
    expect(written(result)).toBe(asWritten(whole));
  });

  test('has the values of its bytes', () => {
    const result = createResult(FULL);
    expect(result.data).toEqual({
      person: { n: 12345678901234567000, z: 1.5, b: 1, 2: [-0, Infinity] },
      é: 'é',
    });
    expect(result.extensions).toEqual({ trace: 1.5 });
    expect(createResult(answer({ data: null })).data).toBeNull();
    expect(result.data).toBe(result.data);
  });

  test('holds the memory of its values when they are read, once', () => {
    const held: number[] = [];
    const result = createResult(FULL, (bytes) => held.push(bytes));
    written(result);
    JSON.stringify([result.errors, result.extensions]);
    expect(held).toEqual([]);
    JSON.stringify([result.data, { ...result }]);
    written({ ...result });
    expect(held).toEqual([(EXACT.length + 2) * 4]);
    const refused = createResult(FULL, () => {
      throw new Error('too large');
    });
    expect(() => refused.data).toThrow('too large');
    expect(written(refused)).toBe(asWritten(FULL));
  });

  test('has errors of GraphQL with what was thrown', () => {
    const [service, thrown, coded] = createResult(FULL).errors!;
    expect(service).toBeInstanceOf(GraphQLError);
    expect(service!.toJSON()).toEqual({
      message: 'no such field',
      path: ['person', 'n'],
      locations: [{ line: 1, column: 2 }],
      extensions: { code: 'X', cost: 1.5 },
    });
    expect(service!.originalError).toBeUndefined();
    expect(thrown).toMatchObject({
      message: 'password=hunter2',
      path: ['person'],
      originalError: cause,
    });
    expect(coded).toMatchObject({
      path: ['allPersons'],
      extensions: { code: 'DRAIN_LIMIT_EXCEEDED' },
    });
    expect(coded).not.toBe((CODED as { thrown: unknown }).thrown);
  });

  test('is written as its bytes after everything was read', () => {
    const result = createResult(FULL);
    JSON.stringify([result.data, result.errors, result.extensions]);
    expect(written(result)).toBe(asWritten(FULL));
  });

  test.each([
    ['{ ...result }', (result: object) => ({ ...result })],
    ['Object.assign', (result: object) => Object.assign({}, result)],
    [
      'structuredClone of the data',
      (result: object) => ({ ...result, data: structuredClone((result as WholeAnswer).data) }),
    ],
  ])('has true values in a copy by %s', (_, copy) => {
    const result = createResult(FULL);
    const copied = copy(result);
    expect(copied).toEqual({
      data: result.data,
      errors: result.errors,
      extensions: result.extensions,
    });
    expect(plain(JSON.parse(written(copied)))).toEqual(plain(JSON.parse(asWritten(FULL))));
  });

  test('sends the bytes of what a copy did not change', () => {
    const result = createResult(FULL);
    expect(written({ ...result })).toBe(asWritten(FULL));
    const sentry = { ...result, errors: result.errors?.map((error) => error) };
    expect(written(sentry)).toBe(asWritten(FULL));
    expect(written({ data: result.data })).toBe(`{"data":{${EXACT}}}`);
  });

  test('sends what is assigned', () => {
    const result = createResult(FULL);
    result.data = { person: null };
    expect(JSON.parse(written(result))).toEqual({
      ...JSON.parse(asWritten(FULL)),
      data: { person: null },
    });
    expect(result.data).toEqual({ person: null });
    expect({ ...result }.data).toEqual({ person: null });
  });

  test('sends what is added', () => {
    const result = createResult(answer());
    result.extensions ??= {};
    Object.assign(result.extensions, { a: 1 });
    expect(written(result)).toBe(`{"data":{${EXACT}},"extensions":{"a":1}}`);
  });

  test('does not send what is deleted, or set to undefined', () => {
    const result = createResult(FULL);
    delete result.extensions;
    delete result.errors;
    expect(written(result)).toBe(`{"data":{${EXACT}}}`);
    const other = createResult(FULL);
    Object.assign(other, { errors: undefined, extensions: undefined });
    expect(written(other)).toBe(`{"data":{${EXACT}}}`);
    const again = createResult(answer());
    delete again.data;
    again.data = { other: true };
    expect(written(again)).toBe('{"data":{"other":true}}');
  });

  test('sends a change deep inside of its data: a plugin may hide values', () => {
    const result = createResult(answer());
    (result.data!['person'] as Record<string, unknown>)['z'] = '***';
    for (const copy of [result, { ...result }]) {
      expect(JSON.parse(written(copy)).data.person).toMatchObject({ z: '***', b: 1 });
    }
  });

  test('sends an object that inherits from it as JSON.stringify would: only what is its own', () => {
    const result = createResult(answer());
    const heir = Object.create(result) as { data: unknown };
    expect(heir.data).toEqual(result.data);
    heir.data = { a: 1 };
    expect(written(heir)).toBe('{"data":{"a":1}}');
    expect(written(result)).toBe(asWritten(answer()));
  });

  test('sends what a plugin adds to an error, and masks it', () => {
    const result = createResult(FULL);
    for (const error of result.errors!) error.extensions['eventId'] = 'abc';
    const { errors } = JSON.parse(written(result)) as { errors: GraphQLError[] };
    expect(errors.map(({ message }) => message)).toEqual(['no such field', 'masked', 'too much']);
    expect(errors[0]!.extensions).toEqual({ code: 'X', cost: 1.5, eventId: 'abc' });
    expect(errors[2]!.extensions).toEqual({ code: 'DRAIN_LIMIT_EXCEEDED', eventId: 'abc' });
    expect((CODED as { thrown: GraphQLError }).thrown.extensions).not.toHaveProperty('eventId');
    expect(written(result)).not.toContain('hunter2');
  });

  test('masks errors that a plugin made of them', () => {
    const result = createResult(FULL);
    const errors = [...result.errors!, cause, { message: 'password=hunter2' }].map((error) =>
      error instanceof GraphQLError
        ? new GraphQLError(error.message, { originalError: error })
        : error,
    );
    expect(written({ ...result, errors })).not.toContain('hunter2');
    expect(written({ data: null, errors: [new GraphQLError('for callers')] })).toBe(
      '{"data":null,"errors":[{"message":"for callers"}]}',
    );
  });
});

describe('extensions.http', () => {
  test('of the service is data', () => {
    const result = createResult(FULL);
    JSON.stringify([result.errors, result.extensions]);
    const nothing = { status: undefined, headers: {} };
    expect(httpOf(result, true)).toEqual(nothing);
    expect(httpOf({ ...result }, true)).toEqual(nothing);
    expect(written(result)).toContain('"http":{"status":500}');
  });

  test('of a plugin is honoured and not written', () => {
    const result = createResult(answer());
    result.extensions = { a: 1, http: { status: 203, headers: { etag: 'x' } } };
    expect(httpOf(result, true)).toEqual({ status: 203, headers: { etag: 'x' } });
    expect(written(result)).toBe(`{"data":{${EXACT}},"extensions":{"a":1}}`);
    result.extensions = { http: { headers: { etag: 'y' } } };
    expect(httpOf(result, true)).toEqual({ status: undefined, headers: { etag: 'y' } });
    expect(written(result)).toBe(`{"data":{${EXACT}}}`);
  });

  test('of the errors of a plugin counts as it does for Yoga', () => {
    const http = { status: 401, headers: { 'www-authenticate': 'Bearer' } };
    const error = (more: object) =>
      new GraphQLError('no', { extensions: { http: { ...http, ...more } } });
    expect(httpOf({ errors: [error({}), error({ status: 400 })] }, true)).toEqual(http);
    expect(httpOf({ errors: [error({ spec: true })] }, true)).toEqual({
      ...http,
      status: undefined,
    });
    expect(httpOf({ errors: [error({ spec: true })] }, false)).toEqual(http);
    expect(written({ errors: [error({})] })).toBe('{"errors":[{"message":"no"}]}');
  });
});

const list: PendingPart = { id: '0', path: ['allPersons'], label: 'L', from: 2 };
const fields: PendingPart = { id: '1', path: ['person'], label: undefined, from: undefined };

const PAYLOADS: readonly (readonly [string, Payload])[] = [
  ['first', { first: FULL, pending: [list, fields], hasNext: true }],
  ['first and whole', { first: FULL, pending: [], hasNext: false }],
  [
    'elements',
    {
      incremental: [
        {
          of: list,
          index: 2,
          count: 2,
          parts: ['{"n":1.50}', ',', '{"n":2}'],
          errors: [SERVICE_ERROR, THROWN],
          extensions: '{"a":1.0}',
        },
        { of: fields, parts: [EXACT], errors: [] },
      ],
      hasNext: true,
    },
  ],
  [
    'failed',
    {
      incremental: [
        { of: list, index: 4, parts: undefined, errors: [THROWN] },
        { of: fields, parts: undefined, errors: [CODED] },
      ],
      hasNext: false,
    },
  ],
  ['ended', { ended: [list], hasNext: false }],
  ['announcing', { pending: [fields], hasNext: true }],
];

const FORMAT = '20220824';

describe('the result of a payload', () => {
  test.each(PAYLOADS)('is written as its bytes: %s', (_, payload) => {
    const bytes = writePayload(payload, FORMAT, mask)
      ?.map((piece) => piece.toString())
      .join('');
    expect(bytesFor(payload)).toBe(bytes);
    expect(bytesFor(payload, (result) => JSON.stringify(Object.values(result)))).toBe(bytes);
    expect(bytesFor(payload, (result) => ({ ...result }))).toBe(bytes);
    const values = createPayload(payload, FORMAT);
    expect(plain(values ?? null)).toEqual(valuesOf(payload));
  });

  test.each(PAYLOADS)('is written with what a plugin changed: %s', (_, payload) => {
    const result = createPayload(payload, FORMAT);
    if (!result?.incremental) return;
    const incremental = result.incremental.map((part) => ({
      ...part,
      items: ['changed'],
      errors: [],
    }));
    const changed = { ...result, incremental };
    const sent = JSON.parse(written(changed)) as PayloadResult;
    expect(sent.hasNext).toBe(payload.hasNext);
    expect(sent.incremental).toMatchObject(incremental.map(() => ({ items: ['changed'] })));
    expect(written(changed)).not.toMatch(/"errors":\[\]|hunter2/);
  });

  test('has errors that a plugin can report', () => {
    const result = createPayload(PAYLOADS[2]![1], FORMAT)!;
    const { errors } = result.incremental![0] as { errors: GraphQLError[] };
    expect(errors[1]!.originalError).toBe(cause);
  });
});

function bytesFor(payload: Payload, touch?: (result: object) => unknown) {
  const result = createPayload(payload, FORMAT);
  if (!result) return undefined;
  const touched = touch?.(result);
  return written(typeof touched === 'object' && touched ? touched : result);
}

/** What a client makes of the bytes, without masking; the service's `http` is no value. */
function valuesOf(payload: Payload): unknown {
  const text = writePayload(payload, FORMAT, (error) => error as Error)?.join('');
  if (text === undefined) return null;
  const values = JSON.parse(text, (key, value: unknown) =>
    key === 'http' || key === 'type' ? undefined : value,
  );
  return plain(values);
}

/** As `JSON.stringify` leaves it. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}
