import { distance } from '../words.ts';

/** Secrets, which can also be given as NAME_FILE: the path of a file that contains the value. */
export const SECRETS = [
  'TOKEN_LINK',
  'TOKEN_STORE',
  'TOKEN_STORE_KEY',
  'AUTH_API_KEYS',
  'EXPORT_API_KEY',
] as const;

/** The variables that are set. An empty or blank value counts as not set. */
export function withoutEmpty(env: Record<string, string | undefined>): Record<string, string> {
  const entries = Object.entries(env).map(([name, value]) => [name, value?.trim()] as const);
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => !!entry[1]));
}

/**
 * Reads the secrets that are given as files, and puts their values into the variables.
 *
 * @param names all settings
 * @returns mistakes, which contain neither a secret nor a path
 */
export function readSecretFiles(
  settings: Record<string, string>,
  names: readonly string[],
  readFile: (path: string) => string,
): string[] {
  return names.flatMap((name) =>
    isSecret(name) ? readSecretFile(name, settings, readFile) : refuseFile(name, settings),
  );
}

function isSecret(name: string): boolean {
  return (SECRETS as readonly string[]).includes(name);
}

/** Refuses the variable, because ignoring it would start the gateway without the setting. */
function refuseFile(name: string, settings: Record<string, string>): string[] {
  if (settings[`${name}_FILE`] === undefined) return [];
  delete settings[`${name}_FILE`];
  return [
    `${name}_FILE is not supported: only ${SECRETS.join(', ')} can be given as a file. Set ${name} to the value itself.`,
  ];
}

const RIGHT_PATH = 'Set it to the path of a file that contains the secret.';

/** The longest secret, characters. A longer file is something else, such as a disk image or a log. */
const LONGEST_SECRET = 64 * 1024;

function readSecretFile(
  name: string,
  settings: Record<string, string>,
  readFile: (path: string) => string,
): string[] {
  const path = settings[`${name}_FILE`];
  if (path === undefined) return [];
  if (settings[name] !== undefined) {
    return [`${name} and ${name}_FILE are both set. Remove one of them.`];
  }
  if (path.includes('://')) {
    return [`${name}_FILE contains the secret itself. ${RIGHT_PATH}`];
  }
  try {
    const text = readFile(path);
    if (text.length > LONGEST_SECRET) {
      return [`${name}_FILE names a file of more than 64 KiB. ${RIGHT_PATH}`];
    }
    const secret = text.trim();
    if (secret === '') return [`${name}_FILE names an empty file. Write the secret into it.`];
    settings[name] = secret;
    return [];
  } catch (error) {
    const { code } = error as { code?: string };
    // The path is left out, because it may be the secret itself.
    const fault =
      code === 'EISDIR' ? 'a folder' : `a file that cannot be read (${code ?? 'unknown error'})`;
    return [`${name}_FILE names ${fault}. ${RIGHT_PATH}`];
  }
}

/** A variable that is not a setting, and the setting that was probably meant. */
export interface Misspelling {
  readonly name: string;
  readonly meant: string;
}

/**
 * Finds variables that are not settings, but are spelled almost like a setting that is not set. Each is reported with the
 * nearest setting.
 *
 * @param names all settings
 */
export function misspellings(
  settings: Readonly<Record<string, string>>,
  names: readonly string[],
): Misspelling[] {
  const known = [...names, ...SECRETS.map((name) => `${name}_FILE`)];
  const missing = known.filter((name) => settings[name] === undefined);
  return Object.keys(settings)
    .filter((name) => !known.includes(name))
    .flatMap((name) => {
      const typed = name.toUpperCase();
      const [meant] = missing
        .filter((other) => isNear(typed, other))
        .toSorted((a, b) => distance(typed, a) - distance(typed, b));
      return meant === undefined ? [] : [{ name, meant }];
    });
}

/**
 * Whether the command or the start is refused: tokens would be written to another place, not be encrypted, or be sent to
 * another service. A name without the first word of the setting may belong to another program, such as STORE_KEY.
 */
export function isRefused({ name, meant }: Misspelling): boolean {
  return /^(RECRUITING|TOKEN)_/.test(meant) && !meant.endsWith(`_${name.toUpperCase()}`);
}

/** @param hasSandbox whether the sandbox would replace a service that is not set */
export function describeRefusal({ name, meant }: Misspelling, hasSandbox: boolean): string {
  // The sandbox would be served to callers who believe that it is the service.
  return hasSandbox && meant === 'RECRUITING_URL'
    ? `${name} is not a setting. RECRUITING_URL was probably meant, but is not set: the sandbox would be served instead of the real service. Rename ${name}, or remove it.`
    : `${name} is not a setting. Was ${meant} meant? Rename ${name}, or remove it.`;
}

export function describeMisspelling({ name, meant }: Misspelling): string {
  return `${name} is not a setting and is ignored. Was ${meant} meant?`;
}

function isNear(name: string, known: string): boolean {
  const words = name.split('_').length;
  const knownWords = known.split('_').length;
  if (Math.abs(name.length - known.length) > 12) return false;
  if (knownWords === 1) return isNearWord(name, known);
  // `LOGLEVEL`. Names without an underscore are common, so only one more letter may differ.
  if (words === 1) return distance(name, known.replaceAll('_', '')) <= 1;
  const hasWordLess = known.startsWith(`${name}_`) || known.endsWith(`_${name}`);
  if (hasWordLess) return knownWords === words + 1 && !OF_OTHERS.includes(name);
  return Math.abs(name.length - known.length) <= 2 && distance(name, known) <= 2;
}

/** Names that many programs read. */
const OF_OTHERS = ['API_KEY', 'API_KEY_FILE'];

/**
 * Compares with a setting of one word. A short one is near only with its own letters: `PORTT` and `PROT`. `PORTS`, `PORT0`,
 * `HOSTS` and `POST` may belong to other programs.
 */
function isNearWord(name: string, known: string): boolean {
  if (distance(name, known) > 2) return false;
  return known.length > 5 || (lettersOf(name) === lettersOf(known) && name !== `${known}S`);
}

function lettersOf(word: string): string {
  return [...new Set(word)].toSorted().join('');
}
