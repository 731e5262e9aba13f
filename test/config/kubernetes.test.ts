import { readFileSync } from 'node:fs';
import { dirname, posix } from 'node:path';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { configWarnings, readConfig, variables } from '../../src/config.ts';

interface Resource {
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

interface Claim extends Resource {
  readonly spec: { readonly accessModes: readonly string[] };
}

interface Deployment extends Resource {
  readonly spec: {
    readonly replicas: number;
    readonly strategy: { readonly type: string };
    readonly selector: { readonly matchLabels: object };
    readonly template: { readonly metadata: { readonly labels: object }; readonly spec: Pod };
  };
}

interface Pod {
  readonly terminationGracePeriodSeconds: number;
  readonly volumes: readonly {
    readonly name: string;
    readonly persistentVolumeClaim?: { readonly claimName: string };
  }[];
  readonly containers: readonly Container[];
}

interface Container {
  readonly command: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string }[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  readonly readinessProbe: Probe;
  readonly livenessProbe: Probe;
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: number };
}

/** The values of the secrets of the example. */
const SECRETS: Readonly<Record<string, string>> = {
  TOKEN_STORE_KEY: Buffer.alloc(32).toString('base64'),
  TOKEN_LINK: 'https://recruiting.example.com/link',
  AUTH_API_KEYS: `portal:${'0'.repeat(64)}`,
};

const [, example = ''] = /```yaml\n([^`]*kind: Deployment.*?)```/s.exec(
  readFileSync('docs/running.md', 'utf8'),
)!;
const resources = parseAllDocuments(example).map((each) => each.toJS() as Resource);
const { spec: deployed } = resources.find(({ kind }) => kind === 'Deployment') as Deployment;
const pod = deployed.template.spec;
const [container] = pod.containers as [Container];
const env = Object.fromEntries(
  container.env.map(({ name, value }) => [name, value ?? SECRETS[name]]),
);

test('the settings of the Kubernetes example start a gateway that serves the real service to known callers', () => {
  const config = readConfig(env, (path) => readFileSync(path, 'utf8'));
  expect(configWarnings(env, config)).toEqual([]);
  expect(config).toMatchObject({ production: true, host: '0.0.0.0', adminHost: '0.0.0.0' });
  expect(config.recruitingUrl).toMatch(/^https:/);
  expect(config.auth).toBeDefined();
  expect(config.tokenStoreKeys).toHaveLength(1);
  expect(config.allowedHosts).not.toHaveLength(0);
  const known = [...Object.keys(variables.shape), 'NODE_ENV'];
  expect(Object.keys(env).filter((name) => !known.includes(name))).toEqual([]);
});

test('the store and the rescue files of the example outlive the pod', () => {
  const { tokenStore, tokenRescueDir } = readConfig(env, () => '');
  const claims = resources.filter(({ kind }) => kind === 'PersistentVolumeClaim') as Claim[];
  if (tokenStore.kind !== 'sqlite') throw new Error('the example has a SQLite store');
  const folder = dirname(tokenStore.path);
  for (const kept of [folder, tokenRescueDir ?? folder]) {
    const mount = container.volumeMounts.find(({ mountPath }) => isBelow(kept, mountPath));
    const volume = pod.volumes.find(({ name }) => name === mount?.name);
    const claimName = volume?.persistentVolumeClaim?.claimName;
    const claim = claims.find(({ metadata }) => metadata.name === claimName);
    // A SQLite store is for one machine, and a volume that two pods share may be on a network.
    expect(claim?.spec.accessModes).toEqual(['ReadWriteOncePod']);
  }
  expect(deployed).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
});

test('the example stops and probes the pod as the gateway expects', () => {
  const { port, shutdownDelayMs } = readConfig(env, () => '');
  expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(
    shutdownDelayMs / 1000 + 10 + 120,
  );
  expect(container.readinessProbe.httpGet).toEqual({ path: '/ready', port });
  expect(container.livenessProbe.httpGet).toEqual({ path: '/health', port });
  expect(container.command).toEqual(['npm', 'start']);
  expect(deployed.template.metadata.labels).toEqual(deployed.selector.matchLabels);
});

/** A folder inside the mount, because the permissions of the mount are the volume's. */
function isBelow(path: string, folder: string): boolean {
  const way = posix.relative(folder, path);
  return way !== '' && !way.startsWith('..');
}
