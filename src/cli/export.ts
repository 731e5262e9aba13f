import { readConfig, readNamedSettings } from '../config.ts';
import { isSecureUrl } from '../config/values.ts';
import { OperatorMistake } from '../errors.ts';
import { recordFormat, type FormatName } from '../export/format.ts';
import { gatewayAt, GatewayFailure, gatewayInside, type Gateway } from '../export/gateway.ts';
import { exportedList, type ExportedList } from '../export/list.ts';
import {
  fileToWrite,
  openExportFile,
  ReaderLeft,
  streamOutput,
  type ExportOutput,
} from '../export/output.ts';
import { idOf, Patience, readPages } from '../export/pages.ts';
import { openGateway, openAccess, type CloseAtEnd } from '../setup/open-gateway.ts';
import { count, exportProgress } from './export-progress.ts';
import { loadedFor } from './gateway-config-file.ts';
import { CommandError, commandLog, type Terminal } from './terminal.ts';

interface ExportOptions {
  readonly field: string;
  readonly fields?: string;
  readonly args?: string;
  readonly format?: FormatName;
  readonly limit?: number;
  readonly output?: string;
  readonly resume: boolean;
  readonly force: boolean;
  readonly url?: string;
  readonly sandbox: boolean;
}

const NOT_WHOLE = 1;
const WITH_FAULTS = 3;
const STOPPED = 'The export was stopped.';

/** Exports a list to a file or to the standard output. @returns the exit code: see docs/export.md */
export async function exportList(options: ExportOptions, terminal: Terminal): Promise<number> {
  const { limit = Infinity, url } = options;
  const { stop: signal, stdout, stderr, clock } = terminal;
  const say = (message: string) => void stderr.write(`${message}\n`);
  if (options.resume && options.output === undefined) {
    throw new OperatorMistake('--resume continues a file. Name it with --output.');
  }
  const formatName = formatOf(options);
  const path = options.output === undefined ? undefined : fileToWrite(options.output);
  await using parts = new AsyncDisposableStack();
  const closeAtEnd: CloseAtEnd = (part) => parts.adopt(part, () => part.close());
  const { gateway, source } =
    url === undefined
      ? await localGateway(options, terminal, closeAtEnd)
      : distantGateway(url, options, terminal);
  closeAtEnd(gateway);
  const list = await listFor(options, gateway, terminal);
  if (list.perhapsCut.length > 0) say(perhapsCut(list.perhapsCut));
  const format = recordFormat(formatName, list.keys);
  const output =
    path === undefined
      ? streamOutput(stdout, format.header, signal)
      : await openExportFile({
          ...options,
          path,
          header: format.header,
          begun: { source, format: formatName, operation: list.stream(limit) },
          clock,
          onBeginAnew: (reason) => say(`${reason} This export begins anew.`),
        });
  if (output === 'whole') {
    say(`${path} is whole already. Export it again with --force.`);
    return 0;
  }
  closeAtEnd(output);
  const { records } = output.progress;
  say(
    records > 0
      ? `Continuing the export of ${list.name} from ${source} to ${path}: ${wereWritten(records)} before.`
      : `Exporting ${list.name} from ${source} to ${path ?? 'the standard output'}.`,
  );
  return await copied({ gateway, list, output, format, path, limit }, terminal);
}

/** Finds the list, as soon as the gateway can be reached. */
async function listFor(
  options: ExportOptions,
  gateway: Gateway,
  { stop, stderr, clock }: Terminal,
): Promise<ExportedList> {
  const patience = new Patience(clock, stop, ({ message }, seconds) => {
    stderr.write(`${message} Trying again in ${seconds} s.\n`);
  });
  for (;;) {
    try {
      return await exportedList(options, gateway, stop);
    } catch (error) {
      if (stop.aborted) throw new CommandError(STOPPED);
      if (isMistake(error)) throw new OperatorMistake(error.message);
      if (!(error instanceof GatewayFailure) || !error.reasons.isTemporary) throw error;
      await patience.wait(error);
    }
  }
}

interface Copy {
  readonly gateway: Gateway;
  readonly list: ExportedList;
  readonly output: ExportOutput;
  readonly format: ReturnType<typeof recordFormat>;
  readonly path: string | undefined;
  readonly limit: number;
}

/** Copies the list to the output, to its end. @returns the exit code */
async function copied(
  { gateway, list, output, format, path, limit }: Copy,
  { stop: signal, stderr, clock }: Terminal,
): Promise<number> {
  const progress = exportProgress(stderr, { clock, from: output.progress });
  const patience = new Patience(clock, signal, ({ message }, seconds) => {
    progress.say(`${message} Trying again in ${seconds} s.`);
  });
  const needed = () => limit - output.progress.records;
  let fault: string | undefined;
  try {
    const { after } = output.progress;
    const pages = readPages({ gateway, list, after, needed, patience, signal });
    for await (const { records: read, after: cursor, faults, listLength = Infinity } of pages) {
      const records = output.written.newOf(read, idOf).slice(0, needed());
      const page = { ids: records.map(idOf), faults: faults.length, after: cursor };
      await output.write(format.write(records), page);
      fault ??= faults[0];
      progress.show(output.progress, Math.min(listLength, limit));
    }
    await output.finish();
  } catch (error) {
    progress.end(output.progress);
    if (error instanceof ReaderLeft) return NOT_WHOLE;
    const why = signal.aborted ? STOPPED : (error as Error).message;
    const message = withNextStep(why, output.progress.records, path);
    throw isMistake(error) ? new OperatorMistake(message) : new CommandError(message, NOT_WHOLE);
  }
  const { records, faults } = output.progress;
  const where = path === undefined ? '' : ` in ${path}`;
  stderr.write(`${count(records, 'record')}${where}. ${progress.end(output.progress)}\n`);
  if (faults === 0) return 0;
  const why = fault === undefined ? '' : `: ${fault}`;
  const what = `${count(faults, 'value')} could not be read, and ${faults === 1 ? 'is' : 'are'} null`;
  stderr.write(`${what}${why}\n`);
  return WITH_FAULTS;
}

function perhapsCut(names: readonly string[]): string {
  return (
    `The gateway does not show its schema. If ${names.join(' or ')} is a paged list, only its first page is exported: ` +
    'take its all… field, or say how many elements to take, such as (first: 50).'
  );
}

/** Whether the export fails again until its operator has corrected something. */
function isMistake(error: unknown): error is Error {
  return (
    error instanceof OperatorMistake ||
    (error instanceof GatewayFailure && error.reasons.isMistake === true)
  );
}

/** Describes why the export ended, and how to continue it. */
function withNextStep(why: string, records: number, path: string | undefined): string {
  if (records === 0 || why.includes('--resume')) return why;
  if (path === undefined)
    return `${why} ${wereWritten(records)}. An export with --output can be resumed.`;
  return `${why} ${wereWritten(records)} to ${path}.part. Run the same command with --resume to continue.`;
}

function wereWritten(records: number): string {
  return `${count(records, 'record')} ${records === 1 ? 'was' : 'were'} written`;
}

/** The format according to the file name or --format. @throws OperatorMistake if the two differ */
function formatOf({ format, output = '' }: ExportOptions): FormatName {
  if (/\.gz$/i.test(output)) {
    throw new OperatorMistake(
      'An export does not compress its file. Give --output a name that does not end with .gz, and compress the file with gzip.',
    );
  }
  const [, ending] = /\.(csv|ndjson|jsonl)$/i.exec(output) ?? [];
  const named = ending === undefined ? undefined : /csv/i.test(ending) ? 'csv' : 'ndjson';
  if (format !== undefined && named !== undefined && format !== named) {
    throw new OperatorMistake(
      `--format ${format} contradicts the name of the file, which ends with .${ending}. Remove --format, or give --output another name.`,
    );
  }
  return format ?? named ?? 'ndjson';
}

interface Source {
  readonly gateway: Gateway;
  /** Its address, or that of the service. */
  readonly source: string;
}

function distantGateway(address: string, { sandbox }: ExportOptions, terminal: Terminal): Source {
  if (sandbox) {
    throw new OperatorMistake(
      '--sandbox exports made-up people without a gateway. Remove it, or remove --url.',
    );
  }
  const { exportApiKey: apiKey } = readNamedSettings(terminal.env, terminal.readFile, [
    'EXPORT_API_KEY',
    'EXPORT_API_KEY_FILE',
  ]);
  const url = graphqlUrl(address);
  if (apiKey !== undefined && !isSecureUrl(url)) {
    throw new OperatorMistake(
      'The key is sent only over https, or to this machine. Give --url an address that begins with https://.',
    );
  }
  return { gateway: gatewayAt(url, apiKey, terminal.proxyFor(url)), source: url };
}

function graphqlUrl(address: string): string {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new OperatorMistake(
      '--url takes an address that begins with http:// or https://, such as http://localhost:4000.',
    );
  }
  if (url.username !== '' || url.password !== '') {
    throw new OperatorMistake(
      '--url takes an address without a user and password. Set EXPORT_API_KEY to a key of the gateway.',
    );
  }
  const path = url.pathname.replace(/\/+$/, '');
  return `${url.origin}${path.endsWith('/graphql') ? path : `${path}/graphql`}`;
}

/**
 * A gateway that no other caller can reach, with the settings of `serve`. Other processes may use the same token store.
 */
async function localGateway(
  { sandbox }: ExportOptions,
  terminal: Terminal,
  closeAtEnd: CloseAtEnd,
): Promise<Source> {
  const { env, readFile, stderr } = terminal;
  const config = readConfig(env, readFile, { hasCallers: false });
  const hasService = config.recruitingUrl !== undefined;
  if (config.exportApiKey !== undefined) throw new OperatorMistake(KEY_WITHOUT_URL);
  if (sandbox === hasService) {
    throw new OperatorMistake(hasService ? TWO_SOURCES : NO_SOURCE);
  }
  const log = await commandLog(config, terminal);
  const added = await loadedFor(config, terminal);
  if (!hasService) stderr.write(SANDBOX_NOTICE);
  const setup = { config, added, machine: terminal, log, closeAtEnd, hasCallers: false };
  const access = await openAccess(setup);
  const gateway = await openGateway(access, { ...setup, config: { ...config, ...ONLY_CALLER } });
  return {
    gateway: gatewayInside(gateway.handler),
    source: config.recruitingUrl ?? 'the sandbox',
  };
}

const KEY_WITHOUT_URL =
  'EXPORT_API_KEY is the key for a gateway, but --url is not given. Add --url with the address of the gateway, or ' +
  'remove EXPORT_API_KEY.';
const TWO_SOURCES =
  '--sandbox exports made-up people, but RECRUITING_URL is set. Remove --sandbox, or RECRUITING_URL.';
const NO_SOURCE =
  'There is nothing to export: RECRUITING_URL is not set. Set it, give the address of a gateway with --url, or export ' +
  'the made-up people of the sandbox with --sandbox.';

const SANDBOX_NOTICE =
  '***  SANDBOX  ***  These people are made up. Set RECRUITING_URL, or give --url, to export real ones.\n';

/** Removes the limits that protect callers from each other: this command is the only caller. */
const ONLY_CALLER = {
  auth: undefined,
  host: '127.0.0.1',
  allowedHosts: undefined,
  trustedDocuments: undefined,
  trustedDocumentsOnly: false,
  introspection: true,
  graphiql: false,
  mutations: 'off',
  pagesPerMinute: 0,
  drainMaxItems: 100_000_000,
  maxAliases: 1_000,
  maxDepth: 1_000,
  maxTokens: 1_000_000,
} as const;
