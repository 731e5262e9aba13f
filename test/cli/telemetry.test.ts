import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { ERROR_CODES } from '../../src/errors.ts';
import { TROUBLES } from '../../src/tokens/token-health.ts';
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
  gateway = await startServe({ env: { WORKERS: '2' } });
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
  const [, section] = /\n## Metrics\n(.*?)\n## /s.exec(readFileSync('docs/telemetry.md', 'utf8'))!;
  const documented = [...section!.matchAll(/`(recruiting_\w+)(?:\{([\w,]+)\})?`/g)].map(
    ([, name, labels = '']) => [name, labels] as const,
  );
  const ours = Array.from(families.keys()).filter((name) => name.startsWith('recruiting_'));
  expect(new Set(documented.map(([name]) => name))).toEqual(new Set(ours));
  for (const [name, labels] of documented) {
    const samples = [...families.get(name!)!.samples.keys()];
    for (const sample of samples) {
      const its = [...sample.matchAll(/(\w+)="/g)].map(([, label]) => label);
      expect([name, its.filter((label) => label !== 'le').join(',')]).toEqual([name, labels]);
    }
  }
});

const CODES = [...ERROR_CODES, 'OTHER'];
/** The values that labels can have. */
const VALUES: Record<string, readonly string[]> = {
  job: ['recruiting-subgraph'],
  code: ['OK', 'LEFT', ...CODES],
  type: ['query', 'mutation', 'none'],
  reason: ['died', 'silent'],
  kind: ['drain', 'search', 'breaking', 'dangerous', 'additive'],
  priority: ['interactive', 'drain'],
  trouble: TROUBLES,
  outcome: [
    ...CODES,
    ...'ok graphql_error left whole stopped'.split(' '),
    ...'rotated same-refresh-token without-refresh-token without-access-token'.split(' '),
    ...'unsent rate-limited refused uncertain invalid-grant'.split(' '),
  ],
};

test('the alert rules use metrics, labels and values that exist', () => {
  const file = parse(readFileSync('monitoring/alerts.yml', 'utf8')) as {
    groups: { name: string; rules: Rule[] }[];
  };
  const rules = file.groups.flatMap(({ rules: its }) => its);
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  const named = new Set<string>();
  for (const { expr, labels, annotations, alert } of rules) {
    expect(labels.severity).toMatch(/^(critical|warning)$/);
    expect(annotations.summary.length).toBeGreaterThan(10);
    const metrics = [...expr.matchAll(/\b(recruiting_\w+|nodejs_\w+|process_\w+|up)\b(\{.*?\})?/g)];
    expect([alert, metrics.length > 0]).toEqual([alert, true]);
    for (const [, metric, selector = ''] of metrics) {
      const name = metric!.replace(/_bucket$/, '');
      expect([alert, name === 'up' || families.has(name)]).toEqual([alert, true]);
      named.add(name);
      for (const [, label, operator, value] of selector.matchAll(/(\w+)(=~|!~|!=|=)"(.*?)"/g)) {
        const wanted = operator!.includes('~') ? value!.split('|') : [value!];
        for (const each of wanted) {
          const known = VALUES[label!]!.some((one) => new RegExp(`^(${each})$`).test(one));
          expect([alert, each, known]).toEqual([alert, each, true]);
        }
      }
    }
  }
  const ownRules = rules.filter(({ expr }) => expr.includes('trouble="blocked"'));
  expect(ownRules.map(({ labels }) => labels.severity)).toEqual(['critical']);
  for (const each of ['token_trouble', 'refresh_token_seconds_left', 'upstream_requests_waiting']) {
    expect(named).toContain(`recruiting_${each}`);
  }
});
