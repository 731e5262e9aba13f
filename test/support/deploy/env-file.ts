/** The variables of an environment file, as docker, systemd and `node --env-file` read them. */
export function settingsIn(text: string): Record<string, string> {
  return Object.fromEntries(
    Array.from(text.matchAll(/^([A-Z_]+)=(.*)$/gm), ([, name, value]) => [name!, value!]),
  );
}
