import { Session } from 'node:inspector/promises';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

/** A function that ran, and its start in the file, in characters. */
export interface RanFunction {
  readonly file: string;
  /** Empty if it is anonymous. */
  readonly name: string;
  readonly start: number;
}

// Loaded into a gateway with --import, so that V8 counts from the first line on.
const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true });

process.on('message', () => {
  void ranSinceLastMessage().then((ran) => process.send!(ran));
});

/** Each reading resets the counts of V8. */
async function ranSinceLastMessage(): Promise<RanFunction[]> {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  return result
    .filter(({ url }) => url.startsWith('file:') && !url.includes('/node_modules/'))
    .flatMap(({ url, functions }) =>
      functions
        .filter(({ ranges }) => ranges[0]!.count > 0)
        .map(({ functionName: name, ranges }) => ({
          file: fileURLToPath(url),
          name,
          start: ranges[0]!.startOffset,
        })),
    );
}
