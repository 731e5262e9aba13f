import type { Command } from 'commander';
import type { Terminal } from './terminal.ts';
import { tokensCheck } from './tokens-check.ts';
import { tokensExport } from './tokens-export.ts';
import { tokensImport } from './tokens-import.ts';
import { tokensRecover } from './tokens-recover.ts';
import { tokensRefresh } from './tokens-refresh.ts';
import { tokensStatus } from './tokens-status.ts';

/** @param end takes the exit code of a command that has one of its own */
export function addTokenCommands(
  root: Command,
  terminal: Terminal,
  end: (exitCode: number) => void,
): void {
  const tokens = root
    .command('tokens')
    .description('the token set; safe to use while a gateway runs on the same store');

  tokens
    .command('import <source>')
    .description(
      'take the token set from its one-time link, a file, or - for standard input, and rotate it at once',
    )
    .option('--replace', 'also over a set that is in use', false)
    .action((source, options) => tokensImport(source, options, terminal));

  tokens
    .command('status')
    .description('how the tokens stand; exit code 0 healthy, 1 needs attention, 2 lost or missing')
    .option('--json', 'for machines', false)
    .action(async (options) => end(await tokensStatus(options, terminal)));

  tokens
    .command('check')
    .description('ask the service whether it takes the current access token')
    .option('--json', 'for machines', false)
    .action(async (options) => end(await tokensCheck(options, terminal)));

  tokens
    .command('refresh')
    .description('one rotation now')
    .action(() => tokensRefresh(terminal));

  tokens
    .command('recover')
    .description('the way out of a rotation that ended without a clear answer')
    .action(() => tokensRecover(terminal));

  tokens
    .command('export <store>')
    .description('move the token set to another store, such as sqlite:<file>')
    .action((store) => tokensExport(store, terminal));
}
