import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { ERROR_CODES, means } from '../../src/errors.ts';
import { TROUBLES } from '../../src/tokens/health.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { familiesOf } from '../support/processes/exposition.ts';
import { startServe, type Program } from '../support/processes/process.ts';
import { wrote } from '../support/gateway/written.ts';

interface Rule {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations: { summary: string };
}

let gateway: Program & { readonly url: string };
let families: ReturnType<typeof familiesOf>;
beforeAll(async () => {
  gateway = await startServe();
  await gateway.printed(/access token refreshed/);
  await askAt(gateway.url, '{ allPersons { id } }');
  const [url] = await gateway.printed(/http:\/\/[^"]+\/metrics/);
  families = familiesOf(wrote(await (await fetch(url)).text()));
});
afterAll(() => gateway[Symbol.asyncDispose]());

test('every metric follows the rules of Prometheus for names', () => {
  for (const [name, { type, samples }] of families) {
    const isOfAllProcesses = /^(process|nodejs)_/.test(name);
    expect([name, isOfAllProcesses || name.startsWith('recruiting_')]).toEqual([name, true]);
    if (isOfAllProcesses) continue;
    expect([name, type === 'counter']).toEqual([name, name.endsWith('_total')]);
    if (type !== 'histogram') continue;
    expect([name, name.endsWith('_seconds')]).toEqual([name, true]);
    const series = [...samples.keys()];
    if (series.length === 0) continue;
    expect(series).toContainEqual(expect.stringMatching(/_bucket\{.*le="\+Inf"/));
  }
  expect(families.has('nodejs_eventloop_lag_p99_seconds')).toBe(true);
});

test('docs/telemetry.md lists every metric with its labels, and no other', () => {
  const documented = documentedLabels();
  const ours = Array.from(families.keys()).filter((name) => name.startsWith('recruiting_'));
  expect(new Set(documented.keys())).toEqual(new Set(ours));
  for (const [name, labels] of documented) {
    for (const sampled of sampledLabels(name)) expect([name, sampled]).toEqual([name, labels]);
  }
});

/** The labels of each metric in the table of docs/telemetry.md, in their order. */
function documentedLabels(): Map<string, readonly string[]> {
  const [, section] = /\n## Metrics\n(.*?)\n## /s.exec(readFileSync('docs/telemetry.md', 'utf8'))!;
  const names = section!.matchAll(/`(recruiting_\w+)(?:\{([\w,]+)\})?`/g);
  return new Map(Array.from(names, ([, name, labels]) => [name!, labels?.split(',') ?? []]));
}

/** The labels of each sample of a metric, without that of the buckets. */
function sampledLabels(name: string): string[][] {
  return [...families.get(name)!.samples.keys()].map((sample) =>
    [...sample.matchAll(/(\w+)="/g)].map(([, label]) => label!).filter((label) => label !== 'le'),
  );
}

const CODES = [...ERROR_CODES, 'OTHER'];
/** The values that labels can have. */
const VALUES: Record<string, readonly string[]> = {
  job: ['recruiting-subgraph'],
  code: ['OK', 'LEFT', ...CODES],
  type: ['query', 'mutation', 'none'],
  index: ['used', 'unused'],
  result: ['hit', 'miss'],
  operation: [''],
  client: [''],
  kind: ['drain', 'search', 'breaking', 'dangerous', 'additive'],
  priority: ['interactive', 'drain'],
  trouble: TROUBLES,
  outcome: [
    ...CODES,
    ...'ok graphql_error left whole stopped'.split(' '),
    ...'granted invalid-grant unsent unclear'.split(' '),
  ],
};

test.each(['monitoring/alerts.yml', 'monitoring/dashboard.json'])(
  'the failures of %s are the codes that are no mistakes of callers',
  (file) => {
    const [, pattern] = /code=~\\?"(UPSTREAM[^"\\]*)/.exec(readFileSync(file, 'utf8'))!;
    const failures = ERROR_CODES.filter((code) => !means(code, 'mistake'));
    expect(ERROR_CODES.filter((code) => new RegExp(`^(${pattern})$`).test(code))).toEqual(failures);
  },
);

test('the alert rules use metrics, labels and values that exist', () => {
  const file = parse(readFileSync('monitoring/alerts.yml', 'utf8')) as {
    groups: { name: string; rules: Rule[] }[];
  };
  const rules = file.groups.flatMap(({ rules: inGroup }) => inGroup);
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  const named = new Set<string>();
  for (const { expr, labels, annotations, alert } of rules) {
    expect(labels.severity).toMatch(/^(critical|warning)$/);
    expect(annotations.summary.length).toBeGreaterThan(10);
    const used = metricsIn(expr, alert);
    expect([alert, used.length > 0]).toEqual([alert, true]);
    for (const name of used) named.add(name);
  }
  expect(rules).toContainEqual(
    expect.objectContaining({
      expr: 'absent(up{job="recruiting-subgraph"})',
      for: '5m',
      labels: { severity: 'critical' },
    }),
  );
  for (const trouble of ['late', 'unauthorized']) {
    const ownRules = rules.filter(({ expr }) => expr.includes(`trouble="${trouble}"`));
    expect(ownRules.map(({ labels }) => labels.severity)).toEqual(['critical']);
  }
  for (const each of ['token_trouble', 'refresh_token_seconds_left', 'upstream_requests_waiting']) {
    expect(named).toContain(`recruiting_${each}`);
  }
});

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: {
    readonly x: number;
    readonly y: number;
    readonly w: number;
    readonly h: number;
  };
  readonly datasource?: object;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

test('the Grafana dashboard uses metrics, labels and values that exist, and shows each metric of the gateway', () => {
  const { panels, templating } = JSON.parse(readFileSync('monitoring/dashboard.json', 'utf8')) as {
    panels: Panel[];
    templating: { list: { name: string; definition?: string }[] };
  };
  const shown = new Set<string>();
  for (const { title, targets = [], type, datasource } of panels) {
    if (type === 'row') continue;
    expect([title, targets.length > 0, datasource]).toEqual([
      title,
      true,
      { type: 'prometheus', uid: '${datasource}' },
    ]);
    for (const { expr, legendFormat } of targets) {
      const used = metricsIn(expr, title);
      expect([expr, used.length > 0]).toEqual([expr, true]);
      for (const name of used) shown.add(name);
      // A label that the expression has summed up would be empty in the legend.
      const [, kept] = /\bby \(([\w, ]+)\)/.exec(expr) ?? [];
      const legend = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label!);
      const labels = kept?.split(', ') ?? (/^(sum|min|max)\(/.test(expr) ? [] : ['instance']);
      expect([title, legend.filter((label) => !labels.includes(label))]).toEqual([title, []]);
      const left = labels.filter((label) => !['le', 'instance'].includes(label));
      expect([title, left.filter((label) => !legend.includes(label))]).toEqual([title, []]);
    }
  }
  const ours = Array.from(families.keys()).filter((name) => name.startsWith('recruiting_'));
  expect(ours.filter((name) => !shown.has(name))).toEqual([]);
  const names = templating.list.map(({ name }) => name);
  expect(names).toEqual(['datasource', 'job', 'instance']);
  for (const { definition } of templating.list) if (definition) metricsIn(definition, definition);
});

test('the panels of the Grafana dashboard have a place and a number each', () => {
  const { panels } = JSON.parse(readFileSync('monitoring/dashboard.json', 'utf8')) as {
    panels: Panel[];
  };
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) => {
    expect(x + w).toBeLessThanOrEqual(24);
    return Array.from({ length: w * h }, (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`);
  });
  expect(new Set(cells).size).toBe(cells.length);
});

/** The labels that Prometheus adds, and that of the buckets. */
const ADDED = ['job', 'instance', 'le'];

/** The metrics of an expression, which must exist, with every label that is selected or kept, and every value. */
function metricsIn(expression: string, where: string): string[] {
  const documented = documentedLabels();
  const matches = expression.matchAll(/\b(recruiting_\w+|nodejs_\w+|process_\w+|up)\b(\{.*?\})?/g);
  const kept = [...expression.matchAll(/\bby \(([\w, ]+)\)/g)].flatMap(([, labels]) =>
    labels!.split(', '),
  );
  return Array.from(matches, ([, metric, selector = '']) => {
    const name = families.has(metric!) ? metric! : metric!.replace(/_(bucket|sum|count)$/, '');
    expect([where, name, name === 'up' || families.has(name)]).toEqual([where, name, true]);
    const labels = [...(documented.get(name) ?? []), ...ADDED];
    expect([where, kept.filter((label) => !labels.includes(label))]).toEqual([where, []]);
    for (const [, label, operator, value] of selector.matchAll(/(\w+)(=~|!~|!=|=)"(.*?)"/g)) {
      expect([where, label, labels.includes(label!)]).toEqual([where, label, true]);
      // A variable of the dashboard.
      if (value!.startsWith('$')) continue;
      for (const each of operator!.includes('~') ? value!.split('|') : [value!]) {
        const known = VALUES[label!]!.some((knownValue) =>
          new RegExp(`^(${each})$`).test(knownValue),
        );
        expect([where, each, known]).toEqual([where, each, true]);
      }
    }
    return name;
  });
}
