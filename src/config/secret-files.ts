/** Secrets, which may also be given as NAME_FILE: the path of a file that holds the value. */
export const SECRETS = ['TOKEN_LINK', 'TOKEN_STORE', 'TOKEN_STORE_KEY', 'AUTH_API_KEYS'] as const;

/**
 * Puts the values of secrets that are in files where those of variables are.
 *
 * @param names all variables there are
 * @returns mistakes, with neither a secret nor a path in them
 */
export function readSecretFiles(
  given: Record<string, string>,
  names: readonly string[],
  readFile: (path: string) => string,
): string[] {
  return names.flatMap((name) =>
    isSecret(name) ? readSecretFile(name, given, readFile) : refuseFile(name, given),
  );
}

/** To pass over it would start the gateway without what it was meant to set. */
function refuseFile(name: string, given: Record<string, string>): string[] {
  if (given[`${name}_FILE`] === undefined) return [];
  delete given[`${name}_FILE`];
  return [
    `${name}_FILE is not read: only ${SECRETS.join(', ')} can be given as a file. Set ${name} to the value itself.`,
  ];
}

function readSecretFile(
  name: string,
  given: Record<string, string>,
  readFile: (path: string) => string,
): string[] {
  const path = given[`${name}_FILE`];
  if (path === undefined) return [];
  if (given[name] !== undefined) {
    return [`${name} and ${name}_FILE are both set; keep one of them.`];
  }
  if (path.includes('://')) {
    return [`${name}_FILE must be the path of a file that holds the secret, not the secret.`];
  }
  try {
    const secret = readFile(path).trim();
    if (secret === '') return [`${name}_FILE names an empty file.`];
    given[name] = secret;
    return [];
  } catch (error) {
    const { code } = error as { code?: string };
    // Without the path: what stands there may be the secret itself.
    return [
      `${name}_FILE names a file that cannot be read (${code ?? 'unknown error'}); it must be the path of a file that holds the secret.`,
    ];
  }
}

function isSecret(name: string): boolean {
  return (SECRETS as readonly string[]).includes(name);
}
