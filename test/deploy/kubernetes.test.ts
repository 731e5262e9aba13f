import { spawnSync } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, posix, resolve } from 'node:path';
import { Deployment } from 'kubernetes-models/apps/v1';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { PersistentVolumeClaim, Service } from 'kubernetes-models/v1';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import manifest from '../../package.json' with { type: 'json' };
import { configWarnings, readConfig, variables } from '../../src/config.ts';
import { heapOf, instructions, lastStage, megabytes } from '../support/deploy/dockerfile.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** The folders of kubernetes-models, and the kinds of the manifests in them. */
const KINDS = {
  'apps/v1': { Deployment },
  'autoscaling/v2': { HorizontalPodAutoscaler },
  'networking.k8s.io/v1': { NetworkPolicy },
  'policy/v1': { PodDisruptionBudget },
  v1: { PersistentVolumeClaim, Service },
};

/** The values of the secrets that manifests refer to. */
const SECRETS: Readonly<Record<string, string>> = {
  'token-store': 'postgres://recruiting:secret@db.example.com/recruiting?sslmode=verify-full',
  'token-store-key': Buffer.alloc(32).toString('base64'),
  'api-keys': `portal:${'0'.repeat(64)}`,
};

const image = lastStage(instructions(readFileSync('Dockerfile', 'utf8')));

function resourcesOf(name: string): Resource[] {
  const text = readFileSync(`deploy/kubernetes/${name}.yaml`, 'utf8');
  return parseAllDocuments(text).map((each) => each.toJS() as Resource);
}

test('the manifests have no key that the published schemas do not know', () => {
  const resources = [...resourcesOf('sqlite'), ...resourcesOf('postgres')];
  const misspelled = { ...resources[0]!, spek: {} };
  expect(compilerErrors([...resources, misspelled])).toEqual([
    expect.stringContaining(`'"spek"' does not exist`),
  ]);
});

describe.each(['sqlite', 'postgres'])('deploy/kubernetes/%s.yaml', (name) => {
  const resources = resourcesOf(name);
  const deployment = new Deployment(only(resources, 'Deployment'));
  const { strategy, selector, template } = deployment.spec!;
  const pod = template.spec!;
  const [container] = pod.containers;
  const env: Record<string, string> = {
    ...image.env,
    ...Object.fromEntries(
      // Every secret is a file.
      container!.env!.map(({ name: variable, value }) => [variable, value!]),
    ),
  };
  const readSecret = (path: string): string => {
    const { mountPath, readOnly } = container!.volumeMounts!.find(
      (each) => each.name === 'secrets',
    )!;
    expect([dirname(path), readOnly]).toEqual([mountPath, true]);
    return SECRETS[basename(path)]!;
  };
  const config = readConfig(env, readSecret);

  test('it is valid for the published schemas', () => {
    for (const { apiVersion, kind, ...rest } of resources) {
      const kinds: Record<string, new (data: never) => { validate(): void }> =
        KINDS[apiVersion as keyof typeof KINDS];
      expect(() => new kinds[kind]!(rest as never).validate()).not.toThrow();
    }
  });

  test('the settings of the manifests serve the real service to known callers', () => {
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

  test('secrets are files for the user of the container, and no environment shows them', () => {
    expect(pod.volumes!.find((each) => each.name === 'secrets')!.secret).toEqual({
      secretName: 'recruiting',
      defaultMode: 0o440,
    });
    expect(container!.env!.filter(({ valueFrom }) => valueFrom)).toEqual([]);
  });

  test('the pods run the image as its user, and only Prometheus reaches the port for metrics', () => {
    expect(container!.image).toBe(`registry.example.com/${manifest.name}:${manifest.version}`);
    expect([container!.command, container!.args]).toEqual([undefined, ['serve']]);
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: image.uid,
      runAsGroup: image.gid,
      fsGroup: image.gid,
    });
    expect(container!.securityContext).toMatchObject({ readOnlyRootFilesystem: true });
    const { podSelector, ingress } = new NetworkPolicy(only(resources, 'NetworkPolicy')).spec!;
    expect(podSelector).toEqual({ matchLabels: template.metadata!.labels });
    const toMetrics = ingress!.filter(({ ports }) => ports!.some(({ port }) => port === 'metrics'));
    expect(toMetrics.map(({ from }) => from?.length)).toEqual([1]);
  });

  test('the limit of memory fits the heap of the gateway', () => {
    const limit = megabytes(String(container!.resources!.limits!['memory']));
    expect(limit).toBeGreaterThanOrEqual(2 * heapOf(image));
  });

  test('it probes and stops the pods as the gateway expects, and sends requests to its ports', () => {
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(
      config.shutdownDelayMs / 1000 + 10 + 120,
    );
    const { startupProbe, readinessProbe, livenessProbe, ports } = container!;
    expect(startupProbe!.httpGet).toEqual({ path: '/health', port: 'http' });
    expect(startupProbe!.periodSeconds! * startupProbe!.failureThreshold!).toBeGreaterThanOrEqual(
      60,
    );
    expect(livenessProbe!.periodSeconds! * livenessProbe!.failureThreshold!).toBeGreaterThanOrEqual(
      30,
    );
    // The default of a second would fail on a node that is short of CPU.
    for (const probe of [startupProbe, readinessProbe, livenessProbe]) {
      expect(probe!.timeoutSeconds).toBeGreaterThan(1);
      expect(probe!.timeoutSeconds).toBeLessThanOrEqual(probe!.periodSeconds!);
    }
    expect(readinessProbe!.httpGet).toEqual({ path: '/ready', port: 'http' });
    expect(livenessProbe!.httpGet).toEqual({ path: '/health', port: 'http' });
    const failing =
      readinessProbe!.periodSeconds! * readinessProbe!.failureThreshold! +
      readinessProbe!.timeoutSeconds!;
    expect(config.shutdownDelayMs).toBeGreaterThan(failing * 1000);
    expect(ports).toEqual([
      { name: 'http', containerPort: config.port },
      { name: 'metrics', containerPort: config.adminPort },
    ]);
    const service = new Service(only(resources, 'Service'));
    expect(service.spec!.ports!.map(({ targetPort }) => targetPort)).toEqual(['http', 'metrics']);
    const labels = template.metadata!.labels;
    expect([selector.matchLabels, service.spec!.selector]).toEqual([labels, labels]);
    expect(config.allowedHosts).toContain(service.metadata!.name);
  });

  test('deploy/kubernetes/podmonitor.yaml scrapes its port for metrics, as the job of the alerts', () => {
    const { spec } = parse(readFileSync('deploy/kubernetes/podmonitor.yaml', 'utf8')) as Monitor;
    const [endpoint] = spec.podMetricsEndpoints;
    expect(spec.selector).toEqual({ matchLabels: template.metadata!.labels });
    expect(endpoint).toMatchObject({ port: 'metrics', path: '/metrics' });
    const job = endpoint!.relabelings.find(({ targetLabel }) => targetLabel === 'job')!;
    expect(readFileSync('monitoring/alerts.yml', 'utf8')).toContain(`up{job="${job.replacement}"}`);
  });

  const volumeOf = (written: string) => {
    const mount = container!.volumeMounts!.find(({ mountPath }) => isBelow(written, mountPath));
    return pod.volumes!.find((each) => each.name === mount?.name);
  };

  test.runIf(name === 'sqlite')(
    'what one replica writes is in a volume that outlives its pod',
    () => {
      for (const written of [
        dirname(env['TOKEN_STORE']!.slice('sqlite:'.length)),
        config.tokenRescueDir!,
      ]) {
        const claimName = volumeOf(written)?.persistentVolumeClaim?.claimName;
        const claim = new PersistentVolumeClaim(only(resources, 'PersistentVolumeClaim'));
        // A SQLite store is for one machine, and a volume that two pods share may be on a network.
        expect(claim).toMatchObject({
          metadata: { name: claimName },
          spec: { accessModes: ['ReadWriteOncePod'] },
        });
      }
      expect(deployment.spec!.replicas).toBe(1);
      expect(strategy).toEqual({ type: 'Recreate' });
    },
  );

  test.runIf(name === 'postgres')(
    'several replicas share a database, and are replaced one by one',
    () => {
      expect(config.tokenStore).toEqual({ kind: 'postgres', url: SECRETS['token-store'] });
      expect(volumeOf(config.tokenRescueDir!)?.emptyDir).toBeDefined();
      expect(deployment.spec!.replicas).toBeUndefined();
      expect(strategy).toMatchObject({
        type: 'RollingUpdate',
        rollingUpdate: { maxUnavailable: 0 },
      });
      const budget = new PodDisruptionBudget(only(resources, 'PodDisruptionBudget'));
      expect(budget.spec).toEqual({ maxUnavailable: 1, selector });
      const scaler = new HorizontalPodAutoscaler(only(resources, 'HorizontalPodAutoscaler'));
      const { minReplicas, scaleTargetRef } = scaler.spec;
      expect(minReplicas).toBeGreaterThanOrEqual(2);
      expect(scaleTargetRef).toEqual({
        apiVersion: deployment.apiVersion,
        kind: deployment.kind,
        name: deployment.metadata!.name,
      });
    },
  );
});

interface Resource {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

interface Monitor {
  readonly spec: {
    readonly selector: object;
    readonly podMetricsEndpoints: readonly {
      readonly relabelings: readonly {
        readonly targetLabel: string;
        readonly replacement: string;
      }[];
    }[];
  };
}

function only(resources: readonly Resource[], kind: string): never {
  const matching = resources.filter((each) => each.kind === kind);
  expect(matching).toHaveLength(1);
  return matching[0] as never;
}

/** The published schemas allow unknown keys; the types that are made of them do not. */
function compilerErrors(resources: readonly Resource[]): string[] {
  using folder = temporaryFolder();
  const literals = resources.map((resource, index) => {
    const { apiVersion, kind } = resource;
    const type = `import('kubernetes-models/${apiVersion}').I${kind}`;
    return `export const r${index}: ${type} = ${JSON.stringify(resource)};\n`;
  });
  writeFileSync(folder.file('manifests.mts'), literals.join(''));
  symlinkSync(resolve('node_modules'), folder.file('node_modules'));
  const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext'];
  const { stdout } = spawnSync(
    resolve('node_modules/.bin/tsc'),
    [...options, '--types', '', folder.file('manifests.mts')],
    { cwd: folder.path, encoding: 'utf8' },
  );
  return stdout.trim().split('\n');
}

/** A folder inside the mount, because the mount's own permissions are those of the volume. */
function isBelow(path: string, folder: string): boolean {
  const way = posix.relative(folder, path);
  return way !== '' && !way.startsWith('..');
}
