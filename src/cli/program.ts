import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { VERSION } from '../config.ts';
import { SCOPES } from '../config/auth.ts';
import { COMMAND_LINE } from '../config/command-line.ts';
import { exitCodeOf, USAGE_ERROR, type Terminal } from './terminal.ts';

interface CommandEntry {
  readonly about: string;
  readonly options?: readonly Option[];
  /**
   * Loads the command when it is run: the tools for schemas would take most of the time of a start, and `tokens status`
   * does not need them. A command gets its options and its argument by their names, and may return an exit code.
   */
  readonly load: () => Promise<(options: never, terminal: Terminal) => Promise<number | void>>;
}

const GROUPS: Record<string, string> = {
  tokens: 'the token set; safe to use while a gateway runs on the same store',
  keys: 'API keys of callers',
  schema: 'the schema that is served',
};

/** By their usage. `--help` and docs/reference.md show them. */
export const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  serve: {
    about: 'serve the gateway; its settings come from the environment',
    load: async () => {
      const { serve } = await import('./serve.ts');
      return (_options, terminal) => serve(terminal);
    },
  },
  sandbox: {
    about: 'play the recruiting service, with made-up people',
    options: [
      number('--port <number>', 'port to listen on; 0 takes a free one', [0, 65_535], 0),
      number('--persons <number>', 'how many people there are', [0, 10_000_000], 137),
      number('--latency <ms>', 'milliseconds before each GraphQL answer', [0, 600_000], 0),
      number('--expires-in <s>', 'life of an access token', [1, 31_536_000], 86_400),
    ],
    load: async () => (await import('./sandbox.ts')).sandbox,
  },
  'export <field>': {
    about: 'export a list to a file, which can be resumed; exit codes: docs/export.md',
    options: [
      option(
        '--fields <selection>',
        "fields of a record, as in GraphQL, such as 'id firstName'",
      ).makeOptionMandatory(),
      option('--args <filters>', `filters of the list, as in GraphQL, such as 'status: OPEN'`),
      option(
        '--format <format>',
        'one record a line (default: as the name of the file ends, otherwise ndjson)',
      ).choices(['ndjson', 'csv']),
      number('--limit <n>', 'export this many records of the list at most', [1, 1_000_000_000]),
      option('--output <file>', 'write to this file; otherwise to the standard output'),
      option('--resume', 'continue an export to this file that was interrupted', false),
      option(
        '--force',
        'replace the file, or what an interrupted export has left of it; with --resume, only if it cannot be continued',
        false,
      ),
      option(
        '--url <gateway>',
        'read from this gateway, such as http://localhost:4000, with the key in EXPORT_API_KEY',
      ).makeOptionMandatory(),
    ],
    load: async () => (await import('./export.ts')).exportList,
  },
  'tokens import <source>': {
    about:
      'import the token set from its one-time link, a file, or - for standard input, and refresh it at once',
    options: [option('--replace', 'replace a set that is in use', false)],
    load: async () => (await import('./tokens.ts')).tokensImport,
  },
  'tokens status': {
    about:
      'print the state of the tokens; exit code 0 healthy, 1 needs attention, 2 lost, moved or missing',
    options: [option('--json', 'print JSON', false)],
    load: async () => (await import('./tokens-status.ts')).tokensStatus,
  },
  'tokens check': {
    about: 'ask the service whether it accepts the current access token',
    load: async () => (await import('./tokens-status.ts')).tokensCheck,
  },
  'tokens refresh': {
    about: 'refresh once, now',
    load: async () => (await import('./tokens.ts')).tokensRefresh,
  },
  'tokens recover': {
    about:
      'resolve a refresh whose outcome is uncertain, and look for a pair that arrived and was not saved',
    load: async () => (await import('./tokens.ts')).tokensRecover,
  },
  'tokens export <store>': {
    about:
      'move the token set to another store: sqlite:<file>, or postgres://<user>:<password>@<host>/<database>',
    load: async () => (await import('./tokens.ts')).tokensExport,
  },
  'keys new <name>': {
    about: 'make an API key, and its entry in AUTH_API_KEYS',
    options: [
      option(
        '--scopes <scopes>',
        `what it may: ${Object.keys(SCOPES).join(', ')}, joined by +`,
        'read',
      ),
    ],
    load: async () => (await import('./keys-new.ts')).keysNew,
  },
  'schema print': {
    about: 'print what callers see, as SDL',
    options: [option('--subgraph', 'print the SDL from which a supergraph is composed', false)],
    load: async () => (await import('./schema-served.ts')).schemaPrint,
  },
  'schema explain': {
    about: 'explain what is derived from each list and each type with an id, and why',
    load: async () => (await import('./schema-served.ts')).schemaExplain,
  },
  'schema check': {
    about:
      'compare the live schema with the snapshot; exit code 0 equal or additive, 1 breaking or dangerous, 2 not compared',
    load: async () => (await import('./schema-live.ts')).schemaCheck,
  },
  'schema pull': {
    about: 'write the live schema into the snapshot',
    load: async () => (await import('./schema-live.ts')).schemaPull,
  },
};

/** Runs a command line. @returns the exit code: 0 done, 1 failed, 2 used or configured wrongly */
export async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  let exitCode = 0;
  try {
    const typed = args.length === 0 ? ['serve'] : args;
    await program(terminal, (code) => (exitCode = code)).parseAsync(typed, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE_ERROR;
    const { message } = error as Error;
    terminal.stderr.write(`${message}\n`);
    return exitCodeOf(error);
  }
}

function program(terminal: Terminal, end: (exitCode: number) => void): Command {
  const root = new Command(COMMAND_LINE)
    .description('One GraphQL gateway in front of the recruiting service.')
    .version(VERSION)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.stdout.write(text),
      writeErr: (text) => terminal.stderr.write(text),
      // The arguments may have the link, or the password of a database, which must not appear in an error.
      outputError: (text, write) => write(text.replace(/[a-z][a-z+.-]*:\/\/\S+/gi, '<link>')),
    })
    // A word that is no command is answered with the list of commands.
    .showHelpAfterError();
  for (const [usage, entry] of Object.entries(COMMANDS)) {
    const { about, options: accepted = [], load } = entry;
    const group = groupOf(usage, root);
    const command = (group ?? root)
      .command(group ? usage.slice(group.name().length + 1) : usage)
      .description(about)
      .showHelpAfterError('Add --help to see the arguments and options of the command.')
      .allowExcessArguments(false)
      .action(async () => {
        const { args, registeredArguments } = command;
        const named = registeredArguments.map((argument, at) => [argument.name(), args[at]]);
        const runCommand = await load();
        const options = { ...command.opts(), ...Object.fromEntries(named) };
        end((await runCommand(options as never, terminal)) ?? 0);
      });
    for (const each of accepted) command.addOption(each);
  }
  return root;
}

function groupOf(usage: string, root: Command): Command | undefined {
  const [name = ''] = usage.split(' ');
  const about = GROUPS[name];
  if (about === undefined) return undefined;
  return (
    root.commands.find((command) => command.name() === name) ??
    root.command(name).description(about)
  );
}

function option(flags: string, about: string, fallback?: string | false): Option {
  return new Option(flags, about).default(fallback);
}

/** Takes a whole number from `min` to `max`. */
function number(
  flags: string,
  about: string,
  [min, max]: readonly [min: number, max: number],
  fallback?: number,
): Option {
  return new Option(flags, about).default(fallback).argParser((text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  });
}
