import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { end, endpointIn, hasEnded, pathOf, start, tell } from './child-processes.ts';
import type { StartOptions } from './child-processes.ts';
import type { Target } from './processes/load-process.ts';
import type { Service } from './services.ts';

/** A process that serves /graphql. */
export interface Server extends Target, AsyncDisposable {
  readonly pid: number;
  readonly hasEnded: () => boolean;
}

export interface BenchGateway extends Server {
  /** Bytes in use, once the garbage is collected; only of a gateway that reports them. */
  inUse(): Promise<number>;
}

export interface GatewayOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly execArgv?: readonly string[];
  readonly reportsMemory?: boolean;
}

const KEY = 'the-key-of-the-benchmark';

/** Everything of the front door: who asks has a key and a budget, and each request is logged and counted. */
export const FRONT_DOOR: Readonly<Record<string, string>> = {
  AUTH_API_KEYS: `bench:${createHash('sha256').update(KEY).digest('hex')}:read+drain`,
  ALLOW_ANONYMOUS: 'false',
  PAGES_PER_MINUTE: '100000000',
  LOG_LEVEL: 'info',
};

/** The gateway as it runs in production, in front of this service; without `env` open to everybody. */
export async function startGateway(
  service: Service,
  options: GatewayOptions = {},
): Promise<BenchGateway> {
  const child = spawnGateway(service, options);
  return {
    endpoint: await endpointIn(child),
    headers: { 'x-api-key': KEY },
    pid: child.pid!,
    hasEnded: () => hasEnded(child),
    inUse: async () => (await tell(child, 'look')) as number,
    [Symbol.asyncDispose]: () => end(child),
  };
}

/** Seconds from its start until it says on /ready that it is. */
export async function timeToReady(
  service: Service,
  options: GatewayOptions = {},
): Promise<{ seconds: number; gateway: Server }> {
  const begin = performance.now();
  const gateway = await startGateway(service, options);
  for (;;) {
    const { status } = await fetch(new URL('/ready', gateway.endpoint));
    if (status === 200) return { seconds: (performance.now() - begin) / 1_000, gateway };
    await wait(2);
  }
}

function spawnGateway(service: Service, { env, execArgv = [], reportsMemory }: GatewayOptions) {
  const { file, flags } = startCommand();
  const reports = reportsMemory ? ['--import', pathOf('processes/memory-reports.ts')] : [];
  return start(file, {
    execArgv: [...flags, ...execArgv, ...reports],
    env: {
      NODE_ENV: 'production',
      PORT: '0',
      ADMIN_PORT: '0',
      RECRUITING_URL: service.url,
      TOKEN_LINK: service.tokenLink,
      TOKEN_STORE: service.tokenStore(),
      ALLOW_ANONYMOUS: 'true',
      // A benchmark is one caller who never stops.
      PAGES_PER_MINUTE: '0',
      ...env,
    },
  } satisfies StartOptions);
}

/** What `npm start` runs. */
function startCommand(): { file: string; flags: readonly string[] } {
  const { scripts } = JSON.parse(readFileSync(pathOf('../package.json'), 'utf8')) as {
    scripts: { start: string };
  };
  const [, ...words] = scripts.start.split(' ');
  const file = words.find((word) => !word.startsWith('-'))!;
  return { file: `../${file}`, flags: words.filter((word) => word.startsWith('-')) };
}
