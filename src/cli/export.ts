import { readConfig, readNamedSettings } from '../config.ts';
import { isSecureUrl } from '../config/values.ts';
import { OperatorMistake } from '../errors.ts';
import { recordFormat, type FormatName } from '../export/format.ts';
import { gatewayAt, GatewayFailure, gatewayInside, type Gateway } from '../export/gateway.ts';
import { exportedList, type ExportedList } from '../export/list.ts';
import { openExportFile, streamOutput, withPage } from '../export/output.ts';
import { idOf, Patience, readPages } from '../export/pages.ts';
import { openGateway, openAccess, type CloseAtEnd } from '../setup/open-gateway.ts';
import { proxyAgent } from '../tokens/service.ts';
import { exportProgress, inWords } from './export-progress.ts';
import { loadGatewayConfig } from './gateway-config-file.ts';
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
  const { field, limit = Infinity, url } = options;
  // `-` is the standard output, as for other programs.
  const path = options.output === '-' ? undefined : options.output;
  const { stop: signal, stdout, stderr, clock } = terminal;
  await using parts = new AsyncDisposableStack();
  const closeAtEnd: CloseAtEnd = (part) => parts.adopt(part, () => part.close());
  const { gateway, source } =
    url === undefined
      ? await localGateway(options, terminal, closeAtEnd)
      : distantGateway(url, options, terminal);
  closeAtEnd(gateway);
  const progress = exportProgress(stderr, clock);
  const patience = new Patience(clock, signal, ({ message }, seconds) => {
    progress.say(`${message} Trying again in ${seconds} s.`);
  });
  const list = await listFor(options, { gateway, patience, signal }).catch((error: unknown) => {
    throw signal.aborted ? new CommandError(STOPPED) : error;
  });
  const formatName = formatOf(options);
  const format = recordFormat(formatName, list.keys);
  const output =
    path === undefined
      ? streamOutput(stdout, format.header)
      : await openExportFile({
          ...options,
          path,
          header: format.header,
          begun: JSON.stringify([source, formatName, list.window(limit)]),
        });
  if (output === 'whole') {
    progress.say(`${path} is whole already. Export it again with --force.`);
    return 0;
  }
  closeAtEnd(output);
  let done = output.before;
  const { records: before } = done;
  progress.say(
    before > 0
      ? `Continuing the export of ${field} from ${source} to ${path}: ${wereWritten(before)} before.`
      : `Exporting ${field} from ${source} to ${path ?? 'the standard output'}.`,
  );
  const needed = () => limit - done.records;
  let fault: string | undefined;
  try {
    const { after } = done;
    const pages = readPages({ gateway, list, after, needed, patience, signal });
    for await (const { records: read, after: cursor, faults } of pages) {
      const records = output.written.newOf(read, idOf);
      const page = { ids: records.map(idOf), faults: faults.length, after: cursor };
      await output.write(format.write(records), page);
      done = withPage(done, page);
      fault ??= faults[0];
      progress.show(done.records, before);
    }
    await output.finish();
  } catch (error) {
    const why = signal.aborted ? STOPPED : (error as Error).message;
    const message = withNextStep(why, done.records, path);
    throw isMistake(error) ? new OperatorMistake(message) : new CommandError(message, NOT_WHOLE);
  }
  const { records, faults } = done;
  const where = path === undefined ? '' : ` in ${path}`;
  stderr.write(`${inWords(records)}${where}, in ${progress.took()}.\n`);
  if (faults === 0) return 0;
  const why = fault === undefined ? '' : `, for example: ${fault}`;
  stderr.write(`Values that could not be read, and are null: ${faults}${why}\n`);
  return WITH_FAULTS;
}

interface Reading {
  readonly gateway: Gateway;
  readonly patience: Patience;
  readonly signal: AbortSignal;
}

/** Finds the list, as soon as the gateway can be reached. */
async function listFor(
  options: ExportOptions,
  { gateway, patience, signal }: Reading,
): Promise<ExportedList> {
  for (;;) {
    try {
      return await exportedList(options, gateway, signal);
    } catch (error) {
      if (isMistake(error)) throw new OperatorMistake(error.message);
      if (!(error instanceof GatewayFailure) || !error.reasons.isTemporary) throw error;
      await patience.wait(error);
    }
  }
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
  if (records === 0) return why;
  if (path === undefined)
    return `${why} ${wereWritten(records)}. An export with --output can be resumed.`;
  return `${why} ${wereWritten(records)} to ${path}.part. Run the same command with --resume to continue.`;
}

function wereWritten(records: number): string {
  return `${inWords(records)} ${records === 1 ? 'was' : 'were'} written`;
}

function formatOf({ format, output = '' }: ExportOptions): FormatName {
  return format ?? (/\.csv$/i.test(output) ? 'csv' : 'ndjson');
}

interface Source {
  readonly gateway: Gateway;
  /** Its address, or that of the service. */
  readonly source: string;
}

function distantGateway(address: string, { sandbox }: ExportOptions, terminal: Terminal): Source {
  if (sandbox) throw new OperatorMistake(ONE_SOURCE);
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
  return { gateway: gatewayAt(url, apiKey, proxyAgent(terminal.env)), source: url };
}

function graphqlUrl(address: string): string {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new OperatorMistake(
      '--url takes an address that begins with http:// or https://, such as http://localhost:4000.',
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
  if (sandbox === hasService) throw new OperatorMistake(ONE_SOURCE);
  const log = await commandLog(config, terminal);
  const added = await loadGatewayConfig(config);
  if (!hasService) stderr.write(SANDBOX_NOTICE);
  const setup = { config, added, machine: terminal, log, closeAtEnd, hasCallers: false };
  const access = await openAccess(setup);
  const gateway = await openGateway(access, { ...setup, config: { ...config, ...ONLY_CALLER } });
  return {
    gateway: gatewayInside(gateway.handler),
    source: config.recruitingUrl ?? 'the sandbox',
  };
}

const ONE_SOURCE =
  'An export has one source: the service of RECRUITING_URL, the gateway of --url, or with --sandbox its made-up people. ' +
  'Set one of the three.';

const SANDBOX_NOTICE =
  '***  SANDBOX  ***  These people are made up. Set RECRUITING_URL, or give --url, to export real ones.\n';

/** Removes the limits that protect callers from each other: this command is the only caller. */
const ONLY_CALLER = {
  auth: undefined,
  allowedHosts: undefined,
  trustedDocuments: undefined,
  trustedDocumentsOnly: false,
  introspection: true,
  pagesPerMinute: 0,
  drainMaxItems: 100_000_000,
  maxAliases: 1_000,
  maxDepth: 1_000,
  maxTokens: 1_000_000,
} as const;
