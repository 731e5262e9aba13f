import { end, start, tell } from './child-processes.ts';
import type { Answered, LoadCommand, Pressed } from './processes/load-process.ts';

type Of<Kind extends LoadCommand['do']> = Omit<Extract<LoadCommand, { do: Kind }>, 'do'>;

/** A process that sends requests and reads answers at little cost. */
export interface Load extends AsyncDisposable {
  press(load: Of<'press'>): Promise<Pressed>;
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
    read: async (load) => (await order({ do: 'read', ...load })) as Answered[],
    stall: async (load) => void (await order({ do: 'stall', ...load })),
    drop: async () => void (await order({ do: 'drop' })),
    [Symbol.asyncDispose]: () => end(child),
  };
}
