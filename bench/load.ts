import { end, messageOf, start, tell } from './child-processes.ts';
import type { Answered, LoadCommand, Pressed } from './processes/load-process.ts';

type Of<Kind extends LoadCommand['do']> = Omit<Extract<LoadCommand, { do: Kind }>, 'do'>;

/** A process that sends requests and reads answers at little cost. */
export interface Load extends AsyncDisposable {
  press(load: Of<'press'>): Promise<Pressed>;
  keepPace(load: Of<'keep pace'>): Promise<Pressed>;
  read(load: Of<'read'>): Promise<Answered[]>;
  stall(load: Of<'stall'>): Promise<void>;
  drop(): Promise<void>;
}

export function startLoad(): Load {
  const child = start('processes/load-process.ts');
  const order = async (command: LoadCommand) => {
    const answer = (await tell(child, command)) as { result: unknown; error?: string };
    if (answer.error !== undefined) throw new Error(`${command.do}: ${answer.error}`);
    return answer.result;
  };
  return {
    press: async (load) => (await order({ do: 'press', ...load })) as Pressed,
    keepPace: async (load) => (await order({ do: 'keep pace', ...load })) as Pressed,
    read: async (load) => (await order({ do: 'read', ...load })) as Answered[],
    stall: async (load) => void (await order({ do: 'stall', ...load })),
    drop: async () => void (await order({ do: 'drop' })),
    [Symbol.asyncDispose]: () => end(child),
  };
}

/** Drains without a pause, each time with another selection: see `drain-process.ts`. */
export async function startDrains(endpoint: string, count: number): Promise<AsyncDisposable> {
  const child = start('processes/drain-process.ts', { args: [endpoint, String(count)] });
  await messageOf(child);
  return { [Symbol.asyncDispose]: () => end(child) };
}
