import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { VERSION } from '../config.ts';
import { SCOPES } from '../config/auth.ts';
import { nearestWord } from '../config/environment.ts';
import { keysNew } from './keys-new.ts';
import { addSchemaCommands } from './schema-commands.ts';
import { exitCodeOf, USAGE_ERROR, type Terminal } from './terminal.ts';
import { addTokenCommands } from './token-commands.ts';

/** Runs a command line. @returns the exit code: 0 done, 1 failed, 2 used or configured wrongly */
export async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  let exitCode = 0;
  try {
    await program(terminal, (code) => (exitCode = code)).parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE_ERROR;
    const { message } = error as Error;
    terminal.stderr.write(`${message}\n`);
    return exitCodeOf(error);
  }
}

/**
 * Commands load what they need when they run: most of a start is the tools for schemas, which `tokens status` does
 * not need.
 */
function program(terminal: Terminal, end: (exitCode: number) => void): Command {
  const root = new Command('recruiting-subgraph')
    .description('One GraphQL gateway in front of the recruiting service.')
    .version(VERSION)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.stdout.write(text),
      writeErr: (text) => terminal.stderr.write(text),
      // The arguments may have the link, which must not appear in an error.
      outputError: (text, write) => write(text.replace(/https?:\/\/[^\s',]+/gi, '<link>')),
    })
    .showHelpAfterError('Add --help to see the arguments and options of the command.');

  root
    .command('serve', { isDefault: true })
    .description('serve the gateway; its settings come from the environment')
    // The default command also gets unknown words, which are reported here.
    .allowExcessArguments()
    .allowUnknownOption()
    .action(async (_options, { args: [typed] }: Command) => {
      if (typed !== undefined) root.error(`error: ${complaintAbout(typed, root)}`);
      const { serve } = await import('./serve.ts');
      await serve(terminal);
    });

  root
    .command('sandbox')
    .description('play the recruiting service, with made-up people')
    .option('--port <number>', 'port to listen on; 0 takes a free one', wholeNumber(0, 65_535), 0)
    .option('--persons <number>', 'how many people there are', wholeNumber(0, 10_000_000), 137)
    .option('--latency <ms>', 'milliseconds before each GraphQL answer', wholeNumber(0, 600_000), 0)
    .option(
      '--token-latency <ms>',
      'milliseconds before each answer to a refresh',
      wholeNumber(0, 600_000),
      0,
    )
    .option('--expires-in <s>', 'life of an access token', wholeNumber(1, 31_536_000), 86_400)
    .option(
      '--refresh-expires-in <s>',
      'life of a refresh token',
      wholeNumber(1, 315_360_000),
      10_368_000,
    )
    .option(
      '--drop-every <n>',
      'cut each n-th refresh off before it is processed',
      wholeNumber(1, 1_000_000),
    )
    .option(
      '--drop-after-every <n>',
      'cut each n-th refresh off once its token is spent',
      wholeNumber(1, 1_000_000),
    )
    .addOption(
      new Option('--cursors <behaviour>', 'what a cursor names')
        .choices(['keyset', 'record', 'position'])
        .default('keyset'),
    )
    .option('--revoke-on-refresh', 'a refresh ends the old access token at once', false)
    .addOption(
      new Option(
        '--schema <name>',
        'what is served: the published list (default), vacancies as well, or results that may be errors',
      ).choices(['persons', 'rich', 'results']),
    )
    .option('--max-cost <cost>', 'refuse operations that cost more', wholeNumber(1, 1_000_000_000))
    .addOption(
      new Option(
        '--too-costly <answer>',
        'how they are refused: with an error, or with a status',
      ).choices(['error', '413', '502', '504']),
    )
    .addOption(
      new Option('--introspection <manner>', 'when it is answered').choices([
        'open',
        'strict',
        'closed',
      ]),
    )
    .addOption(
      new Option('--wording <server>', 'whose words errors of validation have').choices([
        'graphql-js',
        'graphql-java',
        'hot-chocolate',
      ]),
    )
    .option('--require-user-agent', 'refuse requests without a contact in their User-Agent')
    .addOption(
      new Option('--refuse-early-refresh [status]', 'refuse a refresh before the expiry')
        .choices(['400', '403'])
        .preset('400'),
    )
    .option('--link-page', 'make the token link a page for people')
    .option('--cost-extension', 'report the cost of each operation in its answer')
    .option('--request-ids', 'give each answer an X-Request-Id')
    .option('--all-habits', 'all of these from --max-cost on, and --schema results', false)
    .option('--keys', 'make API keys for a gateway in front of it', false)
    .option('--state <file>', 'keep its tokens, and what mutations changed, in a file')
    .action(async (options) => {
      const { sandbox } = await import('./sandbox.ts');
      await sandbox(options, terminal);
    });

  root
    .command('export <field>')
    .description('export a list to a file, which can be resumed; exit codes: docs/export.md')
    .option('--fields <selection>', 'fields of a record, as in GraphQL (default: all plain fields)')
    .option('--args <filters>', `filters of the list, as in GraphQL, such as 'status: OPEN'`)
    .addOption(
      new Option('--format <format>', 'one record a line')
        .choices(['ndjson', 'csv'])
        .default('ndjson'),
    )
    .option('--output <file>', 'write to this file; otherwise to the standard output')
    .option('--resume', 'continue an export to this file that was interrupted', false)
    .option('--force', 'replace the file, or what an interrupted export has left of it', false)
    .option(
      '--allow-fewer',
      'exit with 0 even if the service counts more records than it gave',
      false,
    )
    .option('--url <gateway>', 'read through this gateway, with the key in EXPORT_API_KEY')
    .action(async (field, options) => {
      const { exportList } = await import('./export.ts');
      end(await exportList({ field, ...options }, terminal));
    });

  addTokenCommands(root, terminal, end);

  root
    .command('keys')
    .description('API keys of callers')
    .command('new <name>')
    .description('make an API key, and its entry in AUTH_API_KEYS')
    .option(
      '--scopes <scopes>',
      `what it may: ${Object.keys(SCOPES).join(', ')}, joined by +`,
      'read',
    )
    .action((name, options) => keysNew(name, options, terminal));

  addSchemaCommands(root, terminal, end);
  return root;
}

function complaintAbout(typed: string, { commands }: Command): string {
  if (typed.startsWith('-')) return `unknown option '${typed}'`;
  const names = commands.map((command) => command.name());
  const meant = nearestWord(typed, names);
  const advice = meant === undefined ? '' : `\nDid you mean ${meant}?`;
  return `there is no command ${quoted(typed)}${advice}`;
}

/** Anything but a plain word may be a secret. */
function quoted(typed: string): string {
  return /^[a-z][a-z-]{0,20}$/.test(typed) ? `'${typed}'` : 'of that name';
}

function wholeNumber(min: number, max: number) {
  return (text: string): number => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  };
}
