import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { end, hasEnded, pathOf, printedBy, start, tell } from './child-processes.ts';
import type { Target } from './processes/load-process.ts';
import type { Report } from './processes/reports.ts';
import type { Service } from './services.ts';

/** A process that serves /graphql. */
export interface Server extends Target, AsyncDisposable {
  readonly pid: number;
  readonly hasEnded: () => boolean;
}

export interface BenchGateway extends Server {
  /** The report of the module in `reports`; only for a gateway that has one. */
  report<R = Report>(): Promise<R>;
}

interface GatewayOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly execArgv?: readonly string[];
  /** Loaded into the gateway; answers messages with reports. */
  readonly reports?: 'processes/reports.ts';
}

const KEY = 'the-key-of-the-benchmark';

/** All checks on: callers have a key and a budget, and each request is logged and counted. */
export const FRONT_DOOR: Readonly<Record<string, string>> = {
  AUTH_API_KEYS: keyWith('read+drain'),
  ALLOW_ANONYMOUS: 'false',
  PAGES_PER_MINUTE: '100000000',
  LOG_LEVEL: 'info',
};

/** The entry of the key that all requests have. */
export function keyWith(scopes: string): string {
  return `bench:${createHash('sha256').update(KEY).digest('hex')}:${scopes}`;
}

/** The gateway as it runs in production, in front of this service; without `env` it needs no credentials. */
export async function startGateway(
  service: Service,
  options: GatewayOptions = {},
): Promise<BenchGateway> {
  return (await timeToReady(service, options)).gateway;
}

/** Seconds from its start until /ready succeeds. */
export async function timeToReady(
  service: Service,
  options: GatewayOptions = {},
): Promise<{ seconds: number; gateway: BenchGateway }> {
  // The port is chosen here: a gateway that logs only warnings does not print its address.
  const port = await freePort();
  const begin = performance.now();
  const child = spawnGateway(service, port, options);
  const printed = printedBy(child);
  while (!(await isReady(port))) {
    if (hasEnded(child)) throw new Error(`The gateway ended:\n${printed()}`);
    // Often enough for the measurement, and rarely enough not to use the CPU of the gateway.
    await wait(10);
  }
  const gateway = {
    endpoint: `http://127.0.0.1:${port}/graphql`,
    headers: { 'x-api-key': KEY },
    pid: child.pid!,
    hasEnded: () => hasEnded(child),
    report: async <R>() => (await tell(child, 'look')) as R,
    [Symbol.asyncDispose]: () => end(child),
  };
  return { seconds: (performance.now() - begin) / 1_000, gateway };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function isReady(port: number): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/ready`)).status === 200;
  } catch {
    // The gateway does not listen yet.
    return false;
  }
}

function spawnGateway(
  service: Service,
  port: number,
  { env, execArgv = [], reports }: GatewayOptions,
) {
  const { file, flags } = startCommand();
  const reporting = reports ? ['--import', pathOf(reports)] : [];
  return start(file, {
    execArgv: [...flags, ...execArgv, ...reporting],
    env: {
      NODE_ENV: 'production',
      PORT: String(port),
      ADMIN_PORT: '0',
      RECRUITING_URL: service.url,
      TOKEN_LINK: service.tokenLink,
      TOKEN_STORE: service.tokenStore(),
      ALLOW_ANONYMOUS: 'true',
      // A benchmark is one caller who never pauses.
      PAGES_PER_MINUTE: '0',
      ...env,
    },
  });
}

/** Runs what `npm start` runs. */
function startCommand(): { file: string; flags: readonly string[] } {
  const { scripts } = JSON.parse(readFileSync(pathOf('../package.json'), 'utf8')) as {
    scripts: { start: string };
  };
  const words = scripts.start.split(' ');
  return { file: `../${words.at(-1)}`, flags: words.slice(words.indexOf('node') + 1, -1) };
}
