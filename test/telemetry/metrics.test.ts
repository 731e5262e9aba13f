/** The metrics of a running gateway, and the alerts and the dashboard, which agree with them. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { VERSION } from '../../src/config.ts';
import { ERROR_CODES, means } from '../../src/errors.ts';
import { TROUBLES, type Trouble } from '../../src/tokens/health.ts';
import { cut } from '../service/replies.ts';
import { startService } from '../service/service.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { serveHere, type RunningHere } from '../support/gateway/run-here.ts';
import { samplesOf } from '../support/processes/exposition.ts';
import { settingsOver } from '../support/gateway/settings-over.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Serves the sandbox, with tokens that it has just refreshed. */
let gateway: RunningHere;
let metricsUrl: string;
/** The names of its metrics, and their series. */
let names: string[];
let series: string[];
beforeAll(async () => {
  gateway = await serveHere();
  await gateway.printed(/access token refreshed/);
  await askAt(gateway.url, '{ allPersons { id } }');
  metricsUrl = await metricsUrlOf(gateway);
  const text = await (await fetch(metricsUrl)).text();
  names = Array.from(text.matchAll(/^# TYPE (\S+)/gm), ([, name]) => name!);
  series = Array.from(samplesOf(text).keys());
});
afterAll(() => gateway[Symbol.asyncDispose]());

async function metricsUrlOf(serving: RunningHere): Promise<string> {
  return (await serving.printed(/http:\/\/[^"]+\/metrics/))[0];
}

const about = (days: number): unknown => expect.closeTo(days * 86_400, -3);

test.each<[state: 'valid' | Trouble, printed: RegExp, exchanges: string[], secondsLeft: unknown[]]>(
  [
    ['valid', /access token refreshed/, ['granted'], [about(1), about(120)]],
    ['uncertain', /no clear answer/, ['unclear'], [about(1), about(120)]],
    // What is not known is not 0.
    ['missing', /\/metrics/, [], [undefined, undefined]],
  ],
)('the metrics report tokens that are %s', async (state, printed, exchanges, secondsLeft) => {
  await using service = await startService();
  if (state === 'uncertain') service.tokenAnswers.next(cut);
  using folder = temporaryFolder();
  const settings = settingsOver(service, folder);
  if (state === 'missing') settings.TOKEN_LINK = '';
  await using serving = await serveHere(settings);
  await serving.printed(printed);
  const values = samplesOf(await (await fetch(await metricsUrlOf(serving))).text());
  const valueOf = (name: string) => values.get(`recruiting_${name}`);
  expect(valueOf(`build_info{version="${VERSION}"}`)).toBe(1);
  for (const trouble of TROUBLES) {
    const value = valueOf(`token_trouble{trouble="${trouble}"}`);
    expect([trouble, value]).toEqual([trouble, trouble === state ? 1 : 0]);
  }
  for (const outcome of exchanges)
    expect(valueOf(`token_exchanges_total{outcome="${outcome}"}`)).toBe(1);
  const left = ['access', 'refresh'].map((token) => valueOf(`${token}_token_seconds_left`));
  expect(left).toEqual(secondsLeft);
});

test('the admin address serves nothing but the metrics', async () => {
  expect((await fetch(metricsUrl)).headers.get('content-type')).toContain('text/plain');
  expect((await fetch(new URL('/graphql', metricsUrl))).status).toBe(404);
  expect((await fetch(new URL('/metrics', gateway.url))).status).toBe(404);
});

type Expression = readonly [title: string, expr: string];

interface Alerts {
  groups: { rules: { alert: string; expr: string; labels: { severity: string } }[] }[];
}
const alerts = parse(readFileSync('monitoring/alerts.yml', 'utf8')) as Alerts;
const RULES = alerts.groups.flatMap(({ rules }) => rules);

interface Dashboard {
  panels: { title: string; targets?: { expr: string }[] }[];
  templating: { list: { name: string; definition?: string }[] };
}
const dashboard = JSON.parse(readFileSync('monitoring/dashboard.json', 'utf8')) as Dashboard;
const PANELS = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }): Expression => [title, expr]),
);
const EXPRESSIONS = [
  ...RULES.map(({ alert, expr }): Expression => [alert, expr]),
  ...PANELS,
  ...dashboard.templating.list.flatMap(({ name, definition }): Expression[] =>
    definition === undefined ? [] : [[name, definition]],
  ),
];

/** The labels of a metric, also those that Prometheus adds. */
function labelsOf(name: string): string[] {
  const labels = series
    .filter((each) => each.startsWith(name))
    .flatMap((each) => Array.from(each.matchAll(/(\w+)="/g), ([, label]) => label!));
  return [...labels, 'job', 'instance'];
}

test.each(EXPRESSIONS)('%s uses metrics and labels that exist: %s', (_title, expr) => {
  const metrics = [...expr.matchAll(/\b((?:recruiting|nodejs|process)_\w+|up\b)(\{.*?\})?/g)];
  expect(metrics.length).toBeGreaterThan(0);
  const kept = [...expr.matchAll(/\bby \(([\w, ]+)\)/g)].flatMap(([, labels]) =>
    labels!.split(', '),
  );
  for (const [, metric, selector = ''] of metrics) {
    const name = names.includes(metric!) ? metric! : metric!.replace(/_(bucket|sum|count)$/, '');
    if (name !== 'up') expect(names).toContain(name);
    const selected = [...selector.matchAll(/(\w+)(?:=~|!~|!=|=)"/g)].map(([, label]) => label!);
    expect(labelsOf(name)).toEqual(expect.arrayContaining([...kept, ...selected]));
  }
});

test('the dashboard shows each metric of the gateway', () => {
  const ours = names.filter((name) => name.startsWith('recruiting_'));
  expect(ours.filter((name) => !PANELS.some(([, expr]) => expr.includes(name)))).toEqual([]);
});

test.each(TROUBLES)('one alert covers the trouble "%s" of the tokens', (trouble) => {
  const covering = RULES.filter(({ expr }) => {
    const [, pattern] = /token_trouble\{trouble=~?"([\w|]+)"/.exec(expr) ?? [];
    return pattern?.split('|').includes(trouble);
  });
  const isCritical = ['missing', 'lost', 'unauthorized', 'late'].includes(trouble);
  expect(covering).toMatchObject([{ labels: { severity: isCritical ? 'critical' : 'warning' } }]);
});

test('the failures of alerts and dashboard are the codes that are not mistakes of callers', () => {
  const failures = ERROR_CODES.filter((code) => !means(code, 'mistake'));
  const patterns = EXPRESSIONS.flatMap(([, expr]) => /code=~"([^"]+)/.exec(expr)?.[1] ?? []);
  expect(patterns).toHaveLength(2);
  for (const pattern of patterns) {
    expect(ERROR_CODES.filter((code) => new RegExp(`^(${pattern})$`).test(code))).toEqual(failures);
  }
});
