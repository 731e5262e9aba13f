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

/** Variables that Kubernetes sets in each pod for a Service called `recruiting`, `token-…` or `auth-…`. */
const OF_KUBERNETES = /_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT|PORT_\d+_.+)$/;

/**
 * Finds variables that begin like the settings of the service, the tokens and the callers, but are not settings: tokens
 * would be kept elsewhere, not be encrypted, or be sent to another service.
 *
 * @param names all settings
 * @returns mistakes, which name the nearest setting and contain no value
 */
export function unknownSettings(
  env: Record<string, string | undefined>,
  names: readonly string[],
): string[] {
  // The file of a setting that is not a secret has a message of its own.
  const known = names.flatMap((name) => [name, `${name}_FILE`]);
  return Object.keys(withoutEmpty(env))
    .filter((name) => /^(RECRUITING|TOKEN|AUTH)_/i.test(name) && !known.includes(name))
    .filter((name) => !OF_KUBERNETES.test(name))
    .map((name) => {
      const away = (other: string) => distance(name.toUpperCase(), other);
      const [nearest] = known.toSorted((one, other) => away(one) - away(other));
      return `${name} is not a setting. Rename it if ${nearest} was meant, otherwise remove it.`;
    });
}
