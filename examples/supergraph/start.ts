/** Starts two subgraphs and a router, and sends one query across both. Ctrl-C ends all of them. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createPort, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { composeServices } from '@theguild/federation-composition';
import { parse } from 'graphql';
import { payroll, payrollSdl } from './payroll.ts';

const QUERY = '{ allPersons(limit: 3) { firstName salaryBand } }';

/** What `keys new router --scopes read+drain+router` makes: the router's key, and its entry for the gateway. */
const key = randomBytes(32).toString('base64url');
const entry = `router:${createHash('sha256').update(key).digest('hex')}:read+drain+router`;

const main = pathOf('../../src/main.ts');
const hive = pathOf('../../bench/node_modules/.bin/hive-gateway');
const folder = mkdtempSync(join(tmpdir(), 'supergraph-'));
const children: ChildProcess[] = [];
const ending = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ending.abort());
const stopped = once(ending.signal, 'abort');
const ended = Promise.withResolvers<never>();

try {
  await Promise.race([serve(), ended.promise, stopped]);
} catch (error) {
  if (!ending.signal.aborted) console.error((error as Error).message);
} finally {
  const left = children.filter((child) => child.kill());
  // Until the gateway has ended, it writes its store.
  await Promise.all(left.map((child) => once(child, 'exit')));
  rmSync(folder, { recursive: true, force: true });
}
process.exit(ending.signal.aborted ? 0 : 1);

async function serve(): Promise<void> {
  const port = await freePort(process.env['PORT'] || '4000');
  const adminPort = await freePort('0');
  const sandbox = start('sandbox', 'pipe', main, ['sandbox', '--port', '0'], {});
  const [, serviceUrl, link] = await printed(sandbox, /Base URL +(\S+)\s+Token link +(\S+)\n/);
  const gateway = start('gateway', 'pipe', main, [], {
    PORT: '0',
    ADMIN_PORT: adminPort,
    LOG_LEVEL: 'warn',
    RECRUITING_URL: serviceUrl!,
    TOKEN_LINK: link!,
    TOKEN_STORE: `sqlite:${join(folder, 'store', 'tokens.db')}`,
    AUTH_API_KEYS: entry,
  });
  const [recruitingUrl] = await printed(gateway, /http:\/\/\S+\/graphql(?=\s)/);

  const server = createServer((request, response) => void payroll(request, response));
  const payrollUrl = `http://127.0.0.1:${await listen(server, '0')}/graphql`;

  // A registry does the same with the schemas that are published to it.
  const print = ['schema', 'print', '--subgraph'];
  const recruitingSdl = execFileSync(process.execPath, [main, ...print], { encoding: 'utf8' });
  const { supergraphSdl, errors } = composeServices([
    { name: 'recruiting', url: recruitingUrl, typeDefs: parse(recruitingSdl) },
    { name: 'payroll', url: payrollUrl, typeDefs: parse(payrollSdl) },
  ]);
  if (errors) throw new Error(`The subgraphs do not compose:\n${errors.join('\n')}`);
  const supergraph = join(folder, 'supergraph.graphql');
  writeFileSync(supergraph, supergraphSdl);

  const config = pathOf('router.config.ts');
  const options = ['--config-path', config, '--host', '127.0.0.1', '--port', port];
  start('router', 'inherit', hive, ['supergraph', supergraph, ...options], { ROUTER_KEY: key });
  const url = `http://127.0.0.1:${port}/graphql`;
  const answer = await firstAnswer(url);
  console.log(`recruiting  ${recruitingUrl}
metrics     http://127.0.0.1:${adminPort}/metrics
payroll     ${payrollUrl}
router      ${url}

${QUERY}
${answer}`);
  await stopped;
}

/** Another program on the port would answer in place of the router. */
async function freePort(wanted: string): Promise<string> {
  const server = createPort();
  const port = await listen(server, wanted);
  await new Promise((closed) => server.close(closed));
  return port;
}

async function listen(server: Server, port: string): Promise<string> {
  try {
    await once(server.listen({ port, host: '127.0.0.1' }), 'listening');
  } catch (error) {
    const { code } = error as { code?: string };
    const why = code === 'EADDRINUSE' ? 'is in use' : `cannot be used (${code})`;
    const message = `Port ${port} ${why}. Set PORT to another one: PORT=4100 npm run supergraph`;
    throw new Error(message, { cause: error });
  }
  return String((server.address() as AddressInfo).port);
}

/** Starts a program with nothing of the environment that could lead it to a real service. Its end ends all. */
function start(
  name: string,
  stdout: 'pipe' | 'inherit',
  file: string,
  args: readonly string[],
  env: Record<string, string>,
): ChildProcess {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(process.execPath, [file, ...args], {
    env: { PATH, HOME, ...env },
    stdio: ['ignore', stdout, 'inherit'],
  });
  children.push(child);
  child.once('exit', (code, signal) =>
    ended.reject(new Error(`The ${name} has ended (${signal ?? `exit code ${code}`}).`)),
  );
  return child;
}

/** Waits until a program has printed a text. */
function printed(child: ChildProcess, pattern: RegExp): Promise<RegExpExecArray> {
  return new Promise((found) => {
    let text = '';
    child.stdout!.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      const match = pattern.exec(text);
      if (match) found(match);
    });
  });
}

async function firstAnswer(url: string): Promise<string> {
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ query: QUERY });
  for (let attempt = 0; attempt < 240; attempt += 1) {
    const response = await fetch(url, { method: 'POST', headers, body }).catch(() => undefined);
    if (response?.ok) return await response.text();
    await setTimeout(250);
  }
  throw new Error(`The router at ${url} does not answer.`);
}

function pathOf(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}
