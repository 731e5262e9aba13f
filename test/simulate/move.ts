import type { TokenStore } from '../../src/tokens/store/token-store.ts';
import type { Interruption, SimulatedServer } from './database.ts';
import type { Observer } from './observer.ts';
import type { Deed } from './plan.ts';
import type { Process, Trap } from './process.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface MoveParts {
  readonly time: VirtualTime;
  readonly observer: Observer;
  readonly source: SimulatedServer;
  readonly target: SimulatedServer;
  readonly traps: Trap[];
  /** A process of the operator. */
  newCommand(openStore: (by: Process) => TokenStore): Process;
  /** Called when the command has succeeded: then all gateways are restarted with the target. */
  onMoved(): void;
}

const AGAIN_MS = 30_000;

/** The move of the set to another database, by a command that the operator repeats until it succeeds. */
export class SetMove {
  isWanted = false;
  isDone = false;
  readonly #parts: MoveParts;

  constructor(parts: MoveParts) {
    this.#parts = parts;
  }

  begin({ interruption, times, killAfterMs }: Extract<Deed, { do: 'move' }>): void {
    const { source, target, traps } = this.#parts;
    if (this.isWanted || this.isDone) return;
    this.isWanted = true;
    if (interruption) {
      const server = interruption.purpose === 'move' ? source : target;
      server.interruptions.push(...Array.from({ length: times }, () => interruption));
    }
    if (killAfterMs !== null) {
      traps.push({ point: 'move committed', effect: 'kill', delayMs: killAfterMs, forMs: 0 });
    }
    void this.#run();
  }

  async #run(): Promise<void> {
    const { time, observer, source, target, newCommand, onMoved } = this.#parts;
    if (source.look().isMoved) observer.met('an interrupted move is finished');
    const command = newCommand((by) => source.open(by));
    time.after(AGAIN_MS, () => {
      command.kill();
      if (this.isWanted) void this.#run();
    });
    const isMoved = await command.move(source.open(command), target.open(command));
    command.kill();
    if (!isMoved) return;
    observer.met('the set is moved to another store');
    this.isWanted = false;
    this.isDone = true;
    onMoved();
  }
}

/** A fault that was meant for the move, which may come later than the others. */
export function isOfMove(fault: Interruption | Trap): boolean {
  return 'purpose' in fault
    ? fault.purpose === 'move' || fault.purpose === 'import'
    : fault.point === 'move committed';
}
