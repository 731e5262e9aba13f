import { realpathSync, statSync, type Stats } from 'node:fs';
import { createRequire, registerHooks } from 'node:module';
import { dirname, extname, relative, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { NoAnswerError, systemClock, within } from '../clock.ts';
import type { Config } from '../config.ts';
import { checkGatewayConfig, type CheckedConfig } from '../config/gateway-config.ts';
import { OperatorMistake } from '../errors.ts';
import { printable, type Terminal } from './terminal.ts';

/**
 * Loads and checks the file that GATEWAY_CONFIG names, or else gateway.config.ts in the working directory. The file is
 * code that runs beside the tokens, so in production it is loaded only if GATEWAY_CONFIG names it.
 *
 * @returns undefined if there is none
 * @throws OperatorMistake
 */
export async function loadGatewayConfig(
  { gatewayConfig: named, production }: Pick<Config, 'gatewayConfig' | 'production'>,
  warn: (message: string) => void,
): Promise<CheckedConfig | undefined> {
  const file = named ?? fileHere();
  if (file === undefined) return undefined;
  if (named === undefined && production) {
    warn(
      `${file} is not loaded: in production, only the file that GATEWAY_CONFIG names is. ` +
        `Set GATEWAY_CONFIG=${file}, or remove the file.`,
    );
    return undefined;
  }
  const path = resolve(file);
  const fault = faultOfPath(path);
  if (fault !== undefined) throw new OperatorMistake(`GATEWAY_CONFIG names ${file}, ${fault}.`);
  for (const { risk, isGrave } of risksOf(path)) {
    if (isGrave && production) throw new OperatorMistake(`${file} is not loaded: ${risk}`);
    warn(risk);
  }
  const { default: exported } = await imported(path, file);
  return checkGatewayConfig(exported, file);
}

/** As `loadGatewayConfig`, for a command that does not log. */
export function loadedFor(
  config: Parameters<typeof loadGatewayConfig>[0],
  { stderr }: Pick<Terminal, 'stderr'>,
): Promise<CheckedConfig | undefined> {
  return loadGatewayConfig(config, (risk) => void stderr.write(`${risk}\n`));
}

const NAMES = ['ts', 'mts', 'js', 'mjs'].map((extension) => `gateway.config.${extension}`);

function fileHere(): string | undefined {
  const files = NAMES.filter((name) => statSync(name, { throwIfNoEntry: false })?.isFile());
  if (files.length < 2) return files[0];
  throw new OperatorMistake(
    `There are ${files.join(' and ')}, and only one can be loaded. Remove the others, or name one in GATEWAY_CONFIG.`,
  );
}

/** Returns the end of a sentence if the file cannot be loaded. */
function faultOfPath(path: string): string | undefined {
  if (!/\.m?[jt]s$/.test(path)) return 'which is none of .ts, .mts, .js and .mjs';
  try {
    return statSync(path).isFile() ? undefined : 'which is not a file';
  } catch (error) {
    const { code = 'unknown error' } = error as { code?: string };
    return code === 'ENOENT'
      ? 'which does not exist. Correct the path, or remove the setting'
      : `which cannot be read (${code})`;
  }
}

interface Risk {
  readonly risk: string;
  /** Whether any user of the machine can exploit it. */
  readonly isGrave: boolean;
}

/** Finds other users who can change the file, or replace it because they can write to its folder. */
function risksOf(path: string): Risk[] {
  // Windows has no user ids.
  const user = process.geteuid?.();
  if (user === undefined) return [];
  return [path, dirname(path)].flatMap((each): Risk[] => {
    const stats = statSync(each);
    if (isWritableByAll(stats)) {
      const risk = `every user of this machine can write to ${each}, and so run code beside the tokens. Run chmod o-w ${each}`;
      return [{ risk, isGrave: true }];
    }
    if (stats.uid === user || stats.uid === 0) return [];
    const risk = `${each} belongs to another user (${stats.uid}), who can so run code beside the tokens. Run chown ${user} ${each} if that is not intended.`;
    return [{ risk, isGrave: false }];
  });
}

function isWritableByAll({ mode }: Stats): boolean {
  // In a folder with the sticky bit, such as /tmp, nobody can replace the files of others.
  return (mode & 0o002) !== 0 && (mode & 0o1000) === 0;
}

/** @throws OperatorMistake */
async function imported(path: string, file: string): Promise<{ readonly default?: unknown }> {
  // Node identifies a module by the target of a link, and Kubernetes mounts links.
  const { href } = pathToFileURL(realpathSync(path));
  shareModulesWith(href);
  try {
    const loading = import(href) as Promise<{ readonly default?: unknown }>;
    return await within(systemClock, loading, () => PATIENCE_MS, file);
  } catch (error) {
    throw new OperatorMistake(
      error instanceof NoAnswerError ? `${file} ${TOO_SLOW}` : describe(error, file),
    );
  }
}

/** The file may await something before it exports, such as the schema of a second service. */
const PATIENCE_MS = 30_000;
const TOO_SLOW =
  `cannot be loaded: after ${PATIENCE_MS / 1000} s it still awaits something. ` +
  'Check that what it awaits is reachable, or read it from a file.';

/**
 * Makes all modules that are loaded from now on use the gateway's copy of `graphql`, because graphql-js refuses schemas
 * of another copy. Also lets the file import the gateway where that is not installed.
 */
function shareModulesWith(href: string): void {
  registerHooks({
    resolve: (specifier, context, next) => {
      if (specifier === OURS) return { url: LIBRARY, shortCircuit: true };
      if (SHARED.test(specifier) && context.parentURL !== import.meta.url) {
        return { url: pathToFileURL(resolveHere(specifier)).href, shortCircuit: true };
      }
      const resolved = next(specifier, context);
      // Without a package.json, Node would guess the format and print a warning.
      const format = /\.m?ts$/.test(href) ? 'module-typescript' : 'module';
      return resolved.url === href ? { ...resolved, format } : resolved;
    },
  });
}

const SHARED = /^graphql(\/|$)/;
/** As required by this file. */
const { resolve: resolveHere } = createRequire(import.meta.url);

const OURS = 'recruiting-subgraph';
/** A checkout has it as TypeScript, the packed package as JavaScript. */
const LIBRARY = new URL(`../library/index${extname(import.meta.filename)}`, import.meta.url).href;

function describe(error: unknown, file: string): string {
  const { code, message, stack } = error instanceof Error ? (error as NodeJS.ErrnoException) : {};
  const missing = /^Cannot find package '([^']+)'/.exec(message ?? '')?.[1];
  if (code === 'ERR_MODULE_NOT_FOUND' && missing !== undefined) {
    return `${file} cannot be loaded: the package ${missing} is not installed there. Run npm install ${missing} in its folder.`;
  }
  const at = placeIn(stack);
  const why = reasonsOf(error).join(': ');
  const advice =
    error instanceof SyntaxError
      ? 'Correct it; Node strips types, and nothing else of TypeScript.'
      : 'Correct the file, or what it needs.';
  return `${file} cannot be loaded: ${why}${at === undefined ? '' : ` (${at})`}. ${advice}`;
}

/** The messages of an error and of what caused it, each on one line. */
function reasonsOf(error: unknown, depth = 0): string[] {
  if (!(error instanceof Error)) return [`it threw ${printable(String(error))}`];
  const [reason] = [error.message, (error as NodeJS.ErrnoException).code, error.name].filter(
    Boolean,
  );
  const message = printable(reason!).replace(/[.:]$/, '');
  const causes = error instanceof AggregateError ? error.errors.slice(0, 1) : [error.cause];
  const [cause] = causes;
  return [message, ...(cause instanceof Error && depth < 4 ? reasonsOf(cause, depth + 1) : [])];
}

/** The file and line where an error comes from, if it is one of the company's. */
function placeIn(stack = ''): string | undefined {
  const places = stack.matchAll(/(?:file:\/\/)?(\/[^\s():]+\.m?[jt]s):(\d+)/g);
  for (const [, path, line] of places) {
    if (!path!.includes('/node_modules/') && !path!.startsWith(OUR_FILES)) {
      return `${relative('.', path!)}, line ${line}`;
    }
  }
  return undefined;
}

const OUR_FILES = fileURLToPath(new URL('..', import.meta.url));
