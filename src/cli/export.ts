import { fetch as fetchOver } from 'undici';
import { readConfig, readSettings } from '../config.ts';
import { isSecureUrl } from '../config/values.ts';
import { OperatorMistake } from '../errors.ts';
import { recordFormat, type FormatName } from '../export/format.ts';
import { Gateway } from '../export/gateway.ts';
import { exportedList, idOf, readPages } from '../export/list.ts';
import { openExportFile, streamOutput } from '../export/output.ts';
import { openGateway, type CloseAtEnd } from '../setup/open-gateway.ts';
import { proxyAgent } from '../tokens/service.ts';
import { loadGatewayConfig } from './gateway-config-file.ts';
import { CommandError, commandLog, duration, type Terminal } from './terminal.ts';

interface ExportOptions {
  readonly field: string;
  readonly fields: string;
  readonly args?: string;
  readonly format?: FormatName;
  readonly limit?: number;
  readonly output?: string;
  readonly resume: boolean;
  readonly force: boolean;
  readonly url?: string;
}

const NOT_WHOLE = 1;
const WITH_FAULTS = 3;
const BETWEEN_LINES_MS = 10_000;

/** Exports a list to a file or to the standard output. @returns the exit code: see docs/export.md */
export async function exportList(options: ExportOptions, terminal: Terminal): Promise<number> {
  const { field, limit = Infinity } = options;
  // `-` is the standard output, as for other programs.
  const path = options.output === '-' ? undefined : options.output;
  const { stop: signal, stdout, stderr, clock } = terminal;
  const say = (message: string): void => void stderr.write(`${message}\n`);
  const start = clock.elapsed();
  await using parts = new AsyncDisposableStack();
  const { source, ...way } =
    options.url === undefined
      ? await localGateway(terminal, parts)
      : distantGateway(options.url, terminal, parts);
  const onWait = (message: string, seconds: number) => {
    say(`${message} Trying again in ${seconds} s.`);
  };
  const gateway = new Gateway({ ...way, clock, signal, onWait });
  const list = await exportedList(options, gateway).catch((error: unknown) => {
    throw signal.aborted ? new CommandError(STOPPED) : error;
  });
  const formatName = formatOf(options);
  const format = recordFormat(formatName, list.keys);
  const begun = JSON.stringify([source, formatName, list.window(limit)]);
  const output =
    path === undefined
      ? streamOutput(stdout, format.header)
      : await openExportFile({ ...options, path, header: format.header, begun });
  parts.defer(() => output.close());
  const { written } = output;
  const { after } = written;
  say(
    after === undefined
      ? `Exporting ${field} from ${source} to ${path ?? 'the standard output'}.`
      : `Continuing the export of ${field} from ${source} to ${path}, which has ${inWords(written.records)}.`,
  );
  let fault: string | undefined;
  let nextLineAt = start + BETWEEN_LINES_MS;
  try {
    const needed = () => limit - written.records;
    for await (const page of readPages({ gateway, list, after, needed })) {
      const records = written.newOf(page.records, idOf);
      fault ??= page.faults[0];
      const { length: faults } = page.faults;
      await output.write(format.write(records), { ...page, ids: records.map(idOf), faults });
      if (clock.elapsed() < nextLineAt) continue;
      nextLineAt = clock.elapsed() + BETWEEN_LINES_MS;
      say(inWords(written.records));
    }
    await output.finish();
  } catch (error) {
    const why = signal.aborted ? STOPPED : (error as Error).message;
    const message = withNextStep(why, written.records, path);
    if (error instanceof OperatorMistake) throw new OperatorMistake(message);
    throw new CommandError(message, NOT_WHOLE);
  }
  const { records, faults } = written;
  const where = path === undefined ? '' : ` in ${path}`;
  say(`${inWords(records)}${where}, in ${duration((clock.elapsed() - start) / 1_000)}.`);
  if (faults === 0) return 0;
  const why = fault === undefined ? '' : `, for example: ${fault}`;
  say(`Values that could not be read, and are null: ${faults}${why}`);
  return WITH_FAULTS;
}

const STOPPED = 'The export was stopped.';

/** Describes why the export ended, and how to continue it. */
function withNextStep(why: string, records: number, path: string | undefined): string {
  if (records === 0) return why;
  if (path === undefined) {
    return `${why} ${inWords(records)} came before. An export with --output can be resumed.`;
  }
  return `${why} ${path}.part has ${inWords(records)}. Run the same command with --resume to continue.`;
}

/** For example `1,000 records`. */
function inWords(records: number): string {
  return `${records.toLocaleString('en-US')} record${records === 1 ? '' : 's'}`;
}

function formatOf({ format, output = '' }: ExportOptions): FormatName {
  return format ?? (/\.csv$/i.test(output) ? 'csv' : 'ndjson');
}

/** The way to the gateway that is read. */
interface Source extends Pick<
  ConstructorParameters<typeof Gateway>[0],
  'url' | 'fetch' | 'apiKey'
> {
  /** Its address, or that of the service. */
  readonly source: string;
}

function distantGateway(address: string, terminal: Terminal, parts: AsyncDisposableStack): Source {
  const { exportApiKey: apiKey } = readSettings(terminal.env, terminal.readFile);
  const url = graphqlUrl(address);
  if (apiKey !== undefined && !isSecureUrl(url)) {
    throw new OperatorMistake(
      'The key is sent only over https, or to this machine. Give --url an address that begins with https://.',
    );
  }
  const dispatcher = parts.adopt(proxyAgent(terminal.env), (agent) => agent.destroy());
  // The types of undici and of Node describe the same interfaces, but are different types.
  const fetch: Source['fetch'] = (to, init) => fetchOver(to, { ...(init as object), dispatcher });
  return { url, fetch, apiKey, source: url };
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
async function localGateway(terminal: Terminal, parts: AsyncDisposableStack): Promise<Source> {
  const closeAtEnd: CloseAtEnd = (part) => parts.adopt(part, () => part.close());
  const config = readConfig(terminal.env, terminal.readFile, {
    hasCallers: false,
    hasSandbox: false,
  });
  const log = await commandLog(config, terminal);
  const added = await loadGatewayConfig(config);
  const setup = { config, added, machine: terminal, log, closeAtEnd, hasCallers: false };
  const gateway = await openGateway({ ...setup, config: { ...config, ...ONLY_CALLER } });
  return {
    url: 'http://localhost/graphql',
    fetch: (to, init) => Promise.resolve(gateway.handler.fetch(to, init)),
    apiKey: undefined,
    source: config.recruitingUrl!,
  };
}

/** Removes the limits that protect callers from each other: this command is the only caller. */
const ONLY_CALLER = {
  auth: undefined,
  allowedHosts: undefined,
  trustedDocumentsOnly: false,
  pagesPerMinute: 0,
  drainMaxItems: 100_000_000,
} as const;
