import { readConfig } from '../config.ts';
import { isSecureUrl } from '../config/values.ts';
import { OperatorMistake } from '../errors.ts';
import { exportedList, readPages } from '../export/read.ts';
import { Output, recordFormat, toFile, toStream, type FormatName } from '../export/write.ts';
import { proxyAgent } from '../tokens/service.ts';
import { duration, type Terminal } from './terminal.ts';

interface ExportOptions {
  readonly fields: string;
  readonly args?: string;
  readonly format?: FormatName;
  readonly limit?: number;
  readonly output?: string;
  readonly resume: boolean;
  readonly force: boolean;
  readonly url: string;
}

const WITH_FAULTS = 3;
const BETWEEN_LINES_MS = 10_000;

/** Exports a list to a file or to the standard output. @returns the exit code: see docs/export.md */
export async function exportList(field: string, options: ExportOptions, terminal: Terminal) {
  const { fields, args, limit = Infinity, output: file = '-' } = options;
  // As for other programs.
  const path = file === '-' ? undefined : file;
  if (path === undefined && (options.resume || options.force)) {
    throw new OperatorMistake(
      '--resume and --force need the file that they are about: give --output.',
    );
  }
  const { stop: signal, stdout, stderr, clock } = terminal;
  const say = (message: string): void => void stderr.write(`${message}\n`);
  const start = clock.elapsed();
  const { url, apiKey } = gatewayOf(options, terminal);
  await using parts = new AsyncDisposableStack();
  const http = parts.adopt(proxyAgent(terminal.env), (agent) => agent.destroy());
  const onWait = (message: string, seconds: number) => {
    say(`${message} Trying again in ${seconds} s.`);
  };
  const gateway = { url, apiKey, http, clock, signal, onWait };
  const list = await exportedList(gateway, { field, fields, args }).catch((error: unknown) => {
    throw signal.aborted ? new Error(STOPPED) : error;
  });
  const formatName = options.format ?? (/\.csv$/i.test(file) ? 'csv' : 'ndjson');
  const format = recordFormat(formatName, list.keys);
  const begun = JSON.stringify([url, formatName, list.window(limit)]);
  const target =
    path === undefined
      ? await toStream(stdout, format)
      : toFile({ ...options, path, format, begun });
  parts.defer(() => target.close());
  const output = new Output(format, target);
  const { after } = output;
  say(
    after === undefined
      ? `Exporting ${field} from ${url} to ${path ?? 'the standard output'}.`
      : `Continuing the export of ${field} from ${url} to ${path}, which has ${inWords(output.records)}.`,
  );
  let fault: string | undefined;
  let nextLineAt = start + BETWEEN_LINES_MS;
  try {
    const needed = () => limit - output.records;
    for await (const page of readPages(gateway, list, { after, needed })) {
      fault ??= page.faults[0];
      await output.write(page);
      if (clock.elapsed() < nextLineAt) continue;
      nextLineAt = clock.elapsed() + BETWEEN_LINES_MS;
      say(inWords(output.records));
    }
    await target.finish();
  } catch (error) {
    const why = signal.aborted ? STOPPED : (error as Error).message;
    const message = withNextStep(why, output.records, path);
    throw error instanceof OperatorMistake ? new OperatorMistake(message) : new Error(message);
  }
  const { records, faults } = output;
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
    return `${why}\n${inWords(records)} came before. An export with --output can be resumed.`;
  }
  return `${why}\n${path}.part.db has ${inWords(records)}. Run the same command with --resume, and without --force, to continue.`;
}

/** For example `1,000 records`. */
function inWords(records: number): string {
  return `${records.toLocaleString('en-US')} record${records === 1 ? '' : 's'}`;
}

/** The address of GraphQL at the gateway of --url, and the key for it. */
function gatewayOf({ url: address }: ExportOptions, { env }: Terminal) {
  const { exportApiKey: apiKey } = readConfig(env, 'command');
  if (!/^https?:\/\//i.test(address) || !URL.canParse(address)) {
    throw new OperatorMistake(
      '--url takes an address that begins with http:// or https://, such as http://localhost:4000.',
    );
  }
  const { origin, pathname } = new URL(address);
  const url = origin + pathname.replace(/(\/graphql)?\/*$/, '/graphql');
  if (apiKey !== undefined && !isSecureUrl(url)) {
    throw new OperatorMistake(
      'The key is sent only over https, or to this machine. Give --url an address that begins with https://.',
    );
  }
  return { url, apiKey };
}
