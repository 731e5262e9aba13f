import { readFileSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { ERROR_CODES, means } from '../../src/errors.ts';
import { TROUBLES } from '../../src/tokens/health.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { serveHere } from '../support/gateway/run-here.ts';
import { familiesOf } from '../support/processes/exposition.ts';

let families: ReturnType<typeof familiesOf>;
beforeAll(async () => {
  await using gateway = await serveHere();
  await gateway.printed(/access token refreshed/);
  await askAt(gateway.url, '{ allPersons { id } }');
  const [url] = await gateway.printed(/http:\/\/[^"]+\/metrics/);
  families = familiesOf(await (await fetch(url)).text());
});

/** Each expression of the alerts and of the dashboard's panels and variables, with its title. */
const EXPRESSIONS = [...expressionsOfAlerts(), ...expressionsOfDashboard()];

test.each(EXPRESSIONS)('%s uses metrics, labels and values that exist: %s', (_title, expr) => {
  const metrics = [...expr.matchAll(/\b((?:recruiting|nodejs|process)_\w+|up\b)(\{.*?\})?/g)];
  expect(metrics.length).toBeGreaterThan(0);
  const kept = [...expr.matchAll(/\bby \(([\w, ]+)\)/g)].flatMap(([, labels]) =>
    labels!.split(', '),
  );
  for (const [, metric, selector = ''] of metrics) {
    const name = families.has(metric!) ? metric! : metric!.replace(/_(bucket|sum|count)$/, '');
    if (name !== 'up') expect(Array.from(families.keys())).toContain(name);
    const labels = [...labelsOf(name), 'job', 'instance', 'le'];
    expect(labels).toEqual(expect.arrayContaining(kept));
    for (const [, label, operator, value] of selector.matchAll(/(\w+)(=~|!~|!=|=)"(.*?)"/g)) {
      expect(labels).toContain(label);
      // A variable of the dashboard.
      if (value!.startsWith('$')) continue;
      for (const each of operator!.includes('~') ? value!.split('|') : [value!]) {
        expect(
          VALUES[label!]!.filter((known) => new RegExp(`^(${each})$`).test(known)),
        ).not.toEqual([]);
      }
    }
  }
});

test('the dashboard shows each metric of the gateway', () => {
  const shown = expressionsOfDashboard().map(([, expr]) => expr);
  const ours = Array.from(families.keys()).filter((name) => name.startsWith('recruiting_'));
  expect(ours.filter((name) => !shown.some((expr) => expr.includes(name)))).toEqual([]);
});

test('an alert covers each trouble of the tokens, and late and fatal ones are critical', () => {
  for (const trouble of TROUBLES) {
    const covering = rules().filter(({ expr }) => {
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
  return samples.flatMap((sample) =>
    Array.from(sample.matchAll(/(\w+)="/g), ([, label]) => label!),
  );
}

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
}

function rules(): Rule[] {
  const text = readFileSync('monitoring/alerts.yml', 'utf8');
  return (parse(text) as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules);
}

function expressionsOfAlerts(): (readonly [title: string, expr: string])[] {
  return rules().map(({ alert, expr }) => [alert, expr]);
}

function expressionsOfDashboard(): (readonly [title: string, expr: string])[] {
  const { panels, templating } = JSON.parse(
    readFileSync('monitoring/dashboard.json', 'utf8'),
  ) as Dashboard;
  return [
    ...panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr }) => [title, expr] as const),
    ),
    ...templating.list.flatMap(({ name, definition }) =>
      definition === undefined ? [] : [[name, definition] as const],
    ),
  ];
}

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets?: readonly { readonly expr: string }[];
  }[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly definition?: string }[];
  };
}
