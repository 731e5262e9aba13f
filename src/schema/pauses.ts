import { setImmediate as nextTurn } from 'node:timers/promises';

/** Called before work that one operation may do ten thousand times: others come to theirs in between. */
export type Pause = (owner: object) => Promise<void>;

const AT_A_TIME = 50;

export function createPauses(): Pause {
  const owners = new WeakMap<object, { begun: number; turn: Promise<void> }>();
  return (owner) => {
    const own = owners.get(owner) ?? { begun: 0, turn: Promise.resolve() };
    owners.set(owner, own);
    own.begun += 1;
    if (own.begun % AT_A_TIME === 0) own.turn = own.turn.then(() => nextTurn());
    return own.turn;
  };
}
