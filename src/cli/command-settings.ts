import { misspelledSettings, readNamedSettings, type Config, type SettingName } from '../config.ts';
import type { Terminal } from './terminal.ts';

/** How a command treats likely misspellings of settings. */
export interface Spelling {
  /** Whether those of settings of the service or of the tokens are refused. Default: false. */
  readonly isChecked?: boolean;
  /** Whether the others are reported. Default: true. */
  readonly isReported?: boolean;
}

/** Reads only the settings that a command needs. @throws ConfigError */
export function readSettings(
  terminal: Terminal,
  names: readonly SettingName[],
  { isChecked = false, isReported = true }: Spelling = {},
): Config {
  const { env, readFile } = terminal;
  const config = readNamedSettings(env, readFile, names, { refusesMisspelled: isChecked });
  if (isReported) reportMisspellings(terminal);
  return config;
}

export function reportMisspellings({ env, stderr }: Terminal): void {
  for (const warning of misspelledSettings(env)) stderr.write(`${warning}\n`);
}
