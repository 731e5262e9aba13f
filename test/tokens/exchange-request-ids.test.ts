import { trace } from '@opentelemetry/api';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { DAY } from '../support/random/manual-clock.ts';
import { startKeptOverSandbox } from '../support/tokens/kept.ts';

const exporter = new InMemorySpanExporter();
beforeAll(() => {
  const spanProcessors = [new SimpleSpanProcessor(exporter)];
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors }));
});
afterAll(() => {
  trace.disable();
});
beforeEach(() => {
  exporter.reset();
});

const INVALID_GRANT = JSON.stringify({ error: 'invalid_grant' });

test.each([
  ['uncertain', { status: 503 }],
  ['rate-limited', { status: 429 }],
  ['refused', { status: 401 }],
  ['early-or-spent', { status: 400, body: INVALID_GRANT }],
] as const)(
  'the log line and the span of an exchange that is %s have the id by which the service finds it',
  async (outcome, answer) => {
    const [line, span] = await failedExchange(answer, () => 'svc-1');
    expect(line).toMatchObject({ outcome, generation: 2, serviceRequestId: 'svc-1' });
    expect(span).toMatchObject({ [ID]: ['svc-1'], 'error.type': outcome });
  },
);

test('a refresh token that the service returns as the id of an exchange is not passed on', async () => {
  const [line, span] = await failedExchange({ status: 503 }, (token) => `of-${token}`);
  expect(line).not.toHaveProperty('serviceRequestId');
  expect(span).not.toHaveProperty(ID);
});

test('a token of an answer that is not believed is not passed on as the id of its exchange', async () => {
  const body = JSON.stringify({ access_token: 'made-access', refresh_token: 'made-refresh' });
  const [line, span] = await failedExchange({ status: 500, body }, () => 'made-access');
  expect(line).not.toHaveProperty('serviceRequestId');
  expect(span).not.toHaveProperty(ID);
});

test('an exchange that gives tokens has no id of the service in its span', async () => {
  const { clock, logged, store } = await startKeptOverSandbox({ requestIds: true });
  await clock.pass(0.7 * DAY);
  expect(await store.read()).toMatchObject({ generation: 3 });
  expect(logged.filter(isFailure)).toEqual([]);
  for (const { attributes } of exporter.getFinishedSpans())
    expect(attributes).not.toHaveProperty(ID);
});

const ID = 'http.response.header.x-request-id';

/** The log line and the attributes of the span. @param id made from the refresh token that is sent */
async function failedExchange(
  answer: { status: number; body?: string },
  id: (refreshToken: string) => string,
) {
  const { clock, logged, sandbox, store } = await startKeptOverSandbox();
  await clock.asleep();
  const { pair } = (await store.read())!;
  exporter.reset();
  const headers = { 'x-request-id': id(pair.refreshToken) };
  sandbox.tokenAnswers.next({ ...answer, headers });
  await clock.pass(0.67 * DAY);
  const failed = exporter.getFinishedSpans().find(({ name }) => name === 'token exchange');
  return [logged.find(isFailure), failed?.attributes] as const;
}

function isFailure({ msg }: Record<string, unknown>): boolean {
  return msg === 'an exchange of the refresh token gave no tokens';
}
