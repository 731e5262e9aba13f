import { readFileSync } from 'node:fs';

/** What the Dockerfile puts into the image, and what its last stage configures in the container. */
export function readDockerfile() {
  const text = readFileSync('Dockerfile', 'utf8')
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, ' ');
  const allOf = (instruction: string, stage = text): string[] =>
    Array.from(stage.matchAll(new RegExp(`^${instruction} (.+)$`, 'gm')), ([, rest]) => rest!);
  const lastStage = text.slice(text.lastIndexOf('\nFROM '));
  const textOf = (instruction: string) => allOf(instruction, lastStage)[0]!;
  const [uid, gid] = textOf('USER').split(':').map(Number) as [number, number];
  const settings = textOf('ENV').matchAll(/(\w+)=(\S+)/g);
  return {
    from: textOf('FROM').replace('${NODE_IMAGE}', /^ARG NODE_IMAGE=(.+)$/m.exec(text)![1]!),
    install: allOf('RUN').find((command) => command.startsWith('npm ci'))!,
    /** From the build context, and not from another stage. */
    copied: allOf('COPY')
      .filter((words) => !words.includes('--from'))
      .map((words) => ({
        sources: words.split(' ').slice(0, -1),
        target: words.split(' ').at(-1)!,
      })),
    env: Object.fromEntries(
      Array.from(settings, ([, name, value]) => [name!, value!] as const),
    ) as Readonly<Record<string, string>>,
    uid,
    gid,
    ports: textOf('EXPOSE').split(' ').map(Number),
    volume: textOf('VOLUME'),
    entrypoint: JSON.parse(textOf('ENTRYPOINT')) as readonly string[],
    healthCheck: JSON.parse(textOf('HEALTHCHECK').replace(/^.*?CMD /, '')) as readonly string[],
  };
}
