import { misspelledSettings, readConfig, type Config, type SettingName } from '../config.ts';
import type { Terminal } from './terminal.ts';

/** How a command treats likely misspellings, of any setting. */
export interface Spelling {
  /** Whether one of the service or of the tokens is refused. Default: false. */
  readonly isChecked?: boolean;
  /** Whether the others are reported. Default: true. */
  readonly isReported?: boolean;
}

/** Reads only the settings that a command needs. @throws ConfigError */
export function readSettings(
  terminal: Terminal,
  only: readonly SettingName[],
  { isChecked = false, isReported = true }: Spelling = {},
): Config {
  const { env, readFile } = terminal;
  const config = readConfig(env, readFile, { serves: false, only, refusesMisspelled: isChecked });
  if (isReported) reportMisspellings(terminal);
  return config;
}

export function reportMisspellings({ env, stderr }: Terminal): void {
  for (const warning of misspelledSettings(env)) stderr.write(`${warning}\n`);
}
