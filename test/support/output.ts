import { EventEmitter, once } from 'node:events';

/** What a command has printed so far. */
export class Output {
  stdout = '';
  stderr = '';
  readonly #changes = new EventEmitter().setMaxListeners(0);

  add(stream: 'stdout' | 'stderr', text: string): void {
    this[stream] += text;
    this.#changes.emit('text');
  }

  /** Returns the first match in one of the streams, now or later. Rejects if the command ends without it. */
  async printed(pattern: RegExp, ended: Promise<unknown>): Promise<RegExpExecArray> {
    let isOver = false;
    const over = ended.then(() => void (isOver = true));
    for (;;) {
      const match = pattern.exec(this.stdout) ?? pattern.exec(this.stderr);
      if (match) return match;
      if (isOver) break;
      await Promise.race([over, once(this.#changes, 'text')]);
    }
    throw new Error(`It ended without printing ${pattern}:\n${this.stdout}\n${this.stderr}`);
  }
}

/** The address of GraphQL, as `serve` prints it. */
export const GRAPHQL_URL = /http:\/\/[^\s"]+\/graphql(?=[\s"])/;
