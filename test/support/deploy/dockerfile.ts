/** An instruction of a Dockerfile. */
interface Instruction {
  readonly name: string;
  readonly text: string;
}

/** What the last stage of a Dockerfile configures in the container. */
interface Image {
  readonly from: string;
  readonly env: Readonly<Record<string, string>>;
  readonly uid: number;
  readonly gid: number;
  readonly ports: readonly number[];
  readonly volume: string;
  readonly entrypoint: readonly string[];
  readonly healthCheck: readonly string[];
}

export function instructions(dockerfile: string): Instruction[] {
  const lines = dockerfile.replaceAll(/^#.*\n/gm, '').replaceAll(/\\\n\s*/g, ' ');
  return [...lines.matchAll(/^([A-Z]+) (.+)$/gm)].map(([, name, text]) => ({
    name: name!,
    text: text!,
  }));
}

export function lastStage(all: readonly Instruction[]): Image {
  const stage = all.slice(all.findLastIndex(({ name }) => name === 'FROM'));
  const textOf = (instruction: string) => stage.find(({ name }) => name === instruction)!.text;
  const args = all.filter(({ name }) => name === 'ARG').map(({ text }) => text.split('='));
  const [uid, gid] = textOf('USER').split(':').map(Number);
  return {
    from: textOf('FROM').replace(/\$\{(\w+)\}/, (_, name) => Object.fromEntries(args)[name]),
    env: Object.fromEntries(
      textOf('ENV')
        .split(/\s+/)
        .map((each) => [each.slice(0, each.indexOf('=')), each.slice(each.indexOf('=') + 1)]),
    ),
    uid: uid!,
    gid: gid!,
    ports: textOf('EXPOSE').split(' ').map(Number),
    volume: textOf('VOLUME'),
    entrypoint: JSON.parse(textOf('ENTRYPOINT')),
    healthCheck: JSON.parse(textOf('HEALTHCHECK').replace(/^.*?CMD /, '')),
  };
}
