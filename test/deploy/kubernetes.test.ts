import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, posix, resolve } from 'node:path';
import { Deployment } from 'kubernetes-models/apps/v1';
import { PersistentVolumeClaim, Service } from 'kubernetes-models/v1';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import manifest from '../../package.json' with { type: 'json' };
import { configWarnings, readConfig, variables } from '../../src/config.ts';
import { instructions, lastStage } from '../support/deploy/dockerfile.ts';
import { temporaryFolder } from '../support/processes/process.ts';

/** The folders of kubernetes-models, and the kinds of the manifests in them. */
const KINDS = {
  'apps/v1': { Deployment },
  v1: { PersistentVolumeClaim, Service },
};

/** The values of the secrets that manifests refer to. */
const SECRETS: Readonly<Record<string, string>> = {
  'token-store-key': Buffer.alloc(32).toString('base64'),
  'token-link': 'https://recruiting.example.com/link',
  'api-keys': `portal:${'0'.repeat(64)}`,
};

const image = lastStage(instructions(readFileSync('Dockerfile', 'utf8')));

describe.each(['sqlite'])('deploy/kubernetes/%s.yaml', (name) => {
  const text = readFileSync(`deploy/kubernetes/${name}.yaml`, 'utf8');
  const resources = parseAllDocuments(text).map((each) => each.toJS() as Resource);
  const deployment = new Deployment(only(resources, 'Deployment'));
  const { strategy, selector, template } = deployment.spec!;
  const pod = template.spec!;
  const [container] = pod.containers;
  const env: Record<string, string> = {
    ...image.env,
    ...Object.fromEntries(
      container!.env!.map(({ name: variable, value, valueFrom }) => [
        variable,
        value ?? SECRETS[valueFrom!.secretKeyRef!.key]!,
      ]),
    ),
  };
  const config = readConfig(env, (path) => readFileSync(path, 'utf8'));

  test('it is valid for the published schemas, which know each of its keys', () => {
    for (const { apiVersion, kind, ...rest } of resources) {
      const kinds: Record<string, new (data: object) => { validate(): void }> =
        KINDS[apiVersion as keyof typeof KINDS];
      expect(() => new kinds[kind]!(rest).validate()).not.toThrow();
    }
    const misspelled = { ...resources[0]!, spek: {} };
    expect(compilerErrors([...resources, misspelled])).toEqual([
      expect.stringContaining(`'"spek"' does not exist`),
    ]);
  });

  test('its settings serve the real service to known callers', () => {
    expect(configWarnings(env, config)).toEqual([]);
    expect(config).toMatchObject({ production: true, host: '0.0.0.0', adminHost: '0.0.0.0' });
    expect(config.recruitingUrl).toMatch(/^https:/);
    expect(config.auth).toBeDefined();
    expect(config.tokenStoreKeys).toHaveLength(1);
    expect(config.allowedHosts).not.toHaveLength(0);
    const known = [...Object.keys(variables.shape), 'NODE_ENV'];
    expect(Object.keys(env).filter((variable) => !known.includes(variable))).toEqual([]);
  });

  test('its pods are the image, without any right that the gateway does not need', () => {
    expect(container!.image).toBe(`registry.example.com/${manifest.name}:${manifest.version}`);
    expect([container!.command, container!.args]).toEqual([undefined, ['serve']]);
    expect(pod).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: image.uid,
        runAsGroup: image.gid,
        fsGroup: image.gid,
        seccompProfile: { type: 'RuntimeDefault' },
      },
    });
    expect(container!.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  });

  test('it probes and stops the pods as the gateway expects, and sends requests to its ports', () => {
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(
      config.shutdownDelayMs / 1000 + 10 + 120,
    );
    const { readinessProbe, livenessProbe, ports } = container!;
    expect(readinessProbe!.httpGet).toEqual({ path: '/ready', port: 'http' });
    expect(livenessProbe!.httpGet).toEqual({ path: '/health', port: 'http' });
    const failing = readinessProbe!.periodSeconds! * readinessProbe!.failureThreshold!;
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

  test('what the gateway writes is in a volume', () => {
    for (const written of [dirname(config.tokenStore.path), config.tokenRescueDir!]) {
      const mount = container!.volumeMounts!.find(({ mountPath }) => isBelow(written, mountPath));
      const volume = pod.volumes!.find((each) => each.name === mount?.name);
      const claimName = volume?.persistentVolumeClaim?.claimName;
      const claim = resources.find(({ metadata }) => metadata.name === claimName) as
        PersistentVolumeClaim | undefined;
      // A SQLite store is for one machine, and a volume that two pods share may be on a network.
      expect(claim?.spec?.accessModes).toEqual(['ReadWriteOncePod']);
    }
    expect(deployment.spec!.replicas).toBe(1);
    expect(strategy).toEqual({ type: 'Recreate' });
  });
});

interface Resource {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

function only(resources: readonly Resource[], kind: string): never {
  const found = resources.filter((each) => each.kind === kind);
  expect(found).toHaveLength(1);
  return found[0] as never;
}

/** What the compiler reports: unlike the validation, the types of the schemas refuse keys that they do not have. */
function compilerErrors(resources: readonly Resource[]): string[] {
  using folder = temporaryFolder();
  const literals = resources.map(({ kind, ...rest }, index) => {
    const from = JSON.stringify(`kubernetes-models/${rest.apiVersion}`);
    const value = JSON.stringify({ kind, ...rest });
    return `export const r${index}: import(${from}).I${kind} = ${value};\n`;
  });
  writeFileSync(folder.file('manifests.ts'), literals.join(''));
  const types = dirname(new URL(import.meta.resolve('kubernetes-models')).pathname);
  writeFileSync(
    folder.file('tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        noEmit: true,
        strict: true,
        skipLibCheck: true,
        types: [],
        module: 'nodenext',
        paths: { 'kubernetes-models/*': [`${types}/*/index.d.ts`] },
      },
      files: ['manifests.ts'],
    }),
  );
  const tsc = resolve('node_modules/.bin/tsc');
  const { stdout } = spawnSync(tsc, ['--project', folder.path], { encoding: 'utf8' });
  return stdout.trim().split('\n');
}

/** A folder inside the mount, because the permissions of the mount are the volume's. */
function isBelow(path: string, folder: string): boolean {
  const way = posix.relative(folder, path);
  return way !== '' && !way.startsWith('..');
}
