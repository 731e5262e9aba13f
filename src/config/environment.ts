/** Secrets, which can also be given as NAME_FILE: the path of a file that contains the value. */
export const SECRETS = [
  'TOKEN_LINK',
  'TOKEN_STORE',
  'TOKEN_STORE_KEY',
  'AUTH_API_KEYS',
  'EXPORT_API_KEY',
] as const;

export type Environment = Readonly<Record<string, string | undefined>>;

/** The variables that are set. An empty or blank value counts as not set. */
export function withoutEmpty(env: Environment): Record<string, string> {
  const entries = Object.entries(env).map(([name, value]) => [name, value?.trim()] as const);
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => !!entry[1]));
}

/**
 * Reads the secrets that are given as files, and puts their values into the variables.
 *
 * @returns mistakes, which contain neither a secret nor a path, because the path may be the secret itself
 */
export function readSecretFiles(
  settings: Record<string, string>,
  readFile: (path: string) => string,
): string[] {
  return SECRETS.flatMap((name) => {
    const path = settings[`${name}_FILE`];
    if (path === undefined) return [];
    if (settings[name] !== undefined) {
      return [`${name} and ${name}_FILE are both set. Remove one of them.`];
    }
    try {
      const secret = readFile(path).trim();
      if (secret !== '') settings[name] = secret;
      return secret === '' ? [`${name}_FILE names an empty file. Write the secret into it.`] : [];
    } catch (error) {
      const { code = 'unknown error' } = error as { code?: string };
      return [
        `${name}_FILE names a file that cannot be read (${code}). Set it to the path of a file that contains the secret.`,
      ];
    }
  });
}

/** Variables that Kubernetes sets in each pod for a Service called `recruiting`, `token-…` or `auth-…`. */
const OF_KUBERNETES = /_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT|PORT_\d+_.+)$/;

/**
 * Finds variables that begin like the settings of the service, the tokens and the callers, but are not settings: tokens
 * would be kept elsewhere, not be encrypted, or be sent to another service.
 *
 * @param names all settings
 * @returns mistakes, which contain no value
 */
export function unknownSettings(env: Environment, names: readonly string[]): string[] {
  const known = [...names, ...SECRETS.map((name) => `${name}_FILE`)];
  return Object.keys(withoutEmpty(env))
    .filter((name) => /^(RECRUITING|TOKEN|AUTH)_/i.test(name) && !known.includes(name))
    .filter((name) => !OF_KUBERNETES.test(name))
    .map((name) => `${name} is not a setting. Correct the name, or remove it.`);
}
