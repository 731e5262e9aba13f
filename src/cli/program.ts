import {
  Command,
  CommanderError,
  InvalidArgumentError,
  Option,
  type OutputConfiguration,
} from 'commander';
import { VERSION } from '../config.ts';
import { COMMAND_LINE } from '../config/values.ts';
import { OperatorMistake } from '../errors.ts';
import type { Terminal } from './terminal.ts';

/** The exit code of a command that was used or configured wrongly. */
const USAGE_ERROR = 2;

/** Runs a command line. @returns the exit code: 0 done, 1 failed, 2 used or configured wrongly */
export async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { stdout, stderr } = terminal;
  let exitCode = 0;
  const start: Start = async (load, parameters) => {
    const command = await load();
    exitCode = (await command(...(parameters as never[]), terminal as never)) ?? 0;
  };
  try {
    const root = commands(start, {
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      // The arguments may have the link, or the password of a database, which must not appear in an error.
      outputError: (text, write) => write(text.replace(/[a-z][a-z+.-]*:\/\/\S+/gi, '<link>')),
    });
    await root.parseAsync(args.length === 0 ? ['serve'] : args, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE_ERROR;
    stderr.write(`${(error as Error).message}\n`);
    const isMistake = [error, (error as Error).cause].some((it) => it instanceof OperatorMistake);
    return isMistake ? USAGE_ERROR : 1;
  }
}

/**
 * Loads a command when it is run: the tools for schemas would take most of the time of a start, and `tokens status` does
 * not need them. A command gets its argument, if it has one, its options and the terminal, and may return an exit code.
 */
type Load = () => Promise<(...parameters: never[]) => Promise<number | void>>;

type Start = (load: Load, parameters: unknown[]) => Promise<void>;

/** All commands. `--help` and docs/reference.md show them. */
export function commands(start: Start, output: OutputConfiguration = {}): Command {
  // commander adds the command itself.
  const runs =
    (load: Load) =>
    (...parameters: unknown[]) =>
      start(load, parameters.slice(0, -1));
  const root = new Command(COMMAND_LINE)
    .description('One GraphQL gateway in front of the recruiting service.')
    .version(VERSION)
    .exitOverride()
    .configureOutput(output)
    // A word that is no command is answered with the list of commands.
    .showHelpAfterError();
  root
    .command('serve')
    .description('serve the gateway; its settings come from the environment')
    .action(runs(async () => (await import('./serve.ts')).serve));
  root
    .command('sandbox')
    .description('play the recruiting service, with made-up people')
    .option('--port <number>', 'port to listen on; 0 takes a free one', whole(0, 65_535), 0)
    .option('--persons <number>', 'how many people there are', whole(0, 10_000_000), 137)
    .option('--expires-in <s>', 'life of an access token', whole(1, 31_536_000), 86_400)
    .action(runs(async () => (await import('./sandbox.ts')).sandbox));
  root
    .command('export <field>')
    .description('export a list to a file, which can be resumed; exit codes: docs/export.md')
    .requiredOption(
      '--fields <selection>',
      "fields of a record, as in GraphQL, such as 'id firstName'",
    )
    .option('--args <filters>', `filters of the list, as in GraphQL, such as 'status: OPEN'`)
    .addOption(
      new Option(
        '--format <format>',
        'one record a line (default: as the name of the file ends, otherwise ndjson)',
      ).choices(['ndjson', 'csv']),
    )
    .option('--limit <n>', 'export this many records of the list at most', whole(1, 1_000_000_000))
    .option('--output <file>', 'write to this file; otherwise to the standard output')
    .option('--resume', 'continue an export to this file that was interrupted', false)
    .addOption(
      new Option('--force', 'replace the file, or what an interrupted export has left of it')
        .default(false)
        .conflicts('resume'),
    )
    .requiredOption(
      '--url <gateway>',
      'read from this gateway, such as http://localhost:4000, with the key in EXPORT_API_KEY',
    )
    .action(runs(async () => (await import('./export.ts')).exportList));

  const tokens = root
    .command('tokens')
    .description('the token set; safe to use while a gateway runs on the same store');
  tokens
    .command('import <source>')
    .description(
      'import the token set from its one-time link, or with - from a link or its JSON on standard input, and refresh it at once',
    )
    .option('--replace', 'replace a set that is in use', false)
    .action(runs(async () => (await import('./tokens.ts')).tokensImport));
  tokens
    .command('status')
    .description(
      'print the state of the tokens; exit code 0 healthy, 1 needs attention, 2 lost, moved or missing',
    )
    .action(runs(async () => (await import('./tokens-status.ts')).tokensStatus));
  tokens
    .command('check')
    .description('ask the service whether it accepts the current access token')
    .action(runs(async () => (await import('./tokens-status.ts')).tokensCheck));
  tokens
    .command('refresh')
    .description('refresh once, now')
    .action(runs(async () => (await import('./tokens.ts')).tokensRefresh));
  tokens
    .command('recover')
    .description(
      'resolve a refresh whose outcome is uncertain, and look for a pair that arrived and was not saved',
    )
    .action(runs(async () => (await import('./tokens.ts')).tokensRecover));
  tokens
    .command('export <store>')
    .description(
      'move the token set to another store: sqlite:<file>, or postgres://<user>:<password>@<host>/<database>',
    )
    .action(runs(async () => (await import('./tokens.ts')).tokensExport));

  root
    .command('keys')
    .description('API keys of callers')
    .command('new <name>')
    .description('make an API key, and its entry in AUTH_API_KEYS')
    .option(
      '--scopes <scopes>',
      'what it may: read, drain, write, router, joined by +; docs/callers.md says what each allows',
      'read',
    )
    .action(runs(async () => (await import('./keys-new.ts')).keysNew));

  const schema = root.command('schema').description('the schema that is served');
  schema
    .command('print')
    .description('print what callers see, as SDL')
    .option('--subgraph', 'print the SDL from which a supergraph is composed', false)
    .action(runs(async () => (await import('./schema.ts')).schemaPrint));
  schema
    .command('explain')
    .description('explain what is derived from each list and each type with an id, and why')
    .action(runs(async () => (await import('./schema.ts')).schemaExplain));
  schema
    .command('check')
    .description(
      'compare the live schema with the snapshot; exit code 0 equal or additive, 1 breaking or dangerous, 2 not compared',
    )
    .action(runs(async () => (await import('./schema.ts')).schemaCheck));
  schema
    .command('pull')
    .description('write the live schema into the snapshot')
    .action(runs(async () => (await import('./schema.ts')).schemaPull));
  return root;
}

/** Reads a whole number from `min` to `max`. */
function whole(min: number, max: number) {
  return (text: string): number => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  };
}
