import { readFileSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { ERROR_CODES, means } from '../../src/errors.ts';
import { TROUBLES } from '../../src/tokens/health.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { serveHere } from '../support/gateway/run-here.ts';
import { familiesOf } from '../support/processes/exposition.ts';

// The alerts and the dashboard agree with the metrics.

let families: ReturnType<typeof familiesOf>;
beforeAll(async () => {
  await using gateway = await serveHere();
  await gateway.printed(/access token refreshed/);
  await askAt(gateway.url, '{ allPersons { id } }');
  const [url] = await gateway.printed(/http:\/\/[^"]+\/metrics/);
  families = familiesOf(await (await fetch(url)).text());
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
const VARIABLES = dashboard.templating.list.flatMap(({ name, definition }): Expression[] =>
  definition === undefined ? [] : [[name, definition]],
);
const EXPRESSIONS = [
  ...RULES.map(({ alert, expr }): Expression => [alert, expr]),
  ...PANELS,
  ...VARIABLES,
];

/** The values that labels can have. */
const VALUES: Record<string, readonly string[]> = {
  job: ['recruiting-subgraph'],
  code: ['OK', 'LEFT', 'OTHER', ...ERROR_CODES],
  type: ['query', 'mutation', 'none'],
  operation: [''],
  priority: ['interactive', 'drain'],
  trouble: TROUBLES,
  outcome: ['ok', 'graphql_error', 'left', 'OTHER', ...ERROR_CODES].concat(
    'granted invalid-grant unsent unclear'.split(' '),
  ),
};

function labelsOf(name: string): readonly string[] {
  const samples = Array.from(families.get(name)?.samples.keys() ?? []);
  const labels = samples.flatMap((sample) => [...sample.matchAll(/(\w+)="/g)]);
  return [...labels.map(([, label]) => label!), 'job', 'instance', 'le'];
}

test.each(EXPRESSIONS)('%s uses metrics, labels and values that exist: %s', (_title, expr) => {
  const metrics = [...expr.matchAll(/\b((?:recruiting|nodejs|process)_\w+|up\b)(\{.*?\})?/g)];
  expect(metrics.length).toBeGreaterThan(0);
  const kept = [...expr.matchAll(/\bby \(([\w, ]+)\)/g)].flatMap(([, labels]) =>
    labels!.split(', '),
  );
  for (const [, metric, selector = ''] of metrics) {
    const name = families.has(metric!) ? metric! : metric!.replace(/_(bucket|sum|count)$/, '');
    if (name !== 'up') expect(Array.from(families.keys())).toContain(name);
    expect(labelsOf(name)).toEqual(expect.arrayContaining(kept));
    for (const [, label, operator, value] of selector.matchAll(/(\w+)(=~|!~|!=|=)"(.*?)"/g)) {
      expect(labelsOf(name)).toContain(label);
      // A variable of the dashboard.
      if (value!.startsWith('$')) continue;
      for (const each of operator!.includes('~') ? value!.split('|') : [value!]) {
        const isKnown = (known: string) => new RegExp(`^(${each})$`).test(known);
        expect([each, VALUES[label!]!.some(isKnown)]).toEqual([each, true]);
      }
    }
  }
});

test('the dashboard shows each metric of the gateway', () => {
  const ours = Array.from(families.keys()).filter((name) => name.startsWith('recruiting_'));
  expect(ours.filter((name) => !PANELS.some(([, expr]) => expr.includes(name)))).toEqual([]);
});

test('an alert covers each trouble of the tokens, and late and fatal ones are critical', () => {
  for (const trouble of TROUBLES) {
    const covering = RULES.filter(({ expr }) => {
      const [, pattern] = /token_trouble\{trouble=~?"([\w|]+)"/.exec(expr) ?? [];
      return pattern?.split('|').includes(trouble);
    });
    const isCritical = ['missing', 'lost', 'unauthorized', 'late'].includes(trouble);
    expect([trouble, ...covering.map(({ labels }) => labels.severity)]).toEqual([
      trouble,
      isCritical ? 'critical' : 'warning',
    ]);
  }
});

test('the failures of alerts and dashboard are the codes that are not mistakes of callers', () => {
  const failures = ERROR_CODES.filter((code) => !means(code, 'mistake'));
  const patterns = EXPRESSIONS.flatMap(([, expr]) => /code=~"([^"]+)/.exec(expr)?.[1] ?? []);
  expect(patterns).toHaveLength(2);
  for (const pattern of patterns) {
    expect(ERROR_CODES.filter((code) => new RegExp(`^(${pattern})$`).test(code))).toEqual(failures);
  }
});
