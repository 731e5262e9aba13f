const LONGEST = 300;

/** Words of the service, on their way into logs and terminals: nothing in them may steer those. */
export function onOneLine(words: string): string {
  const line = words.replace(/[\p{C}\s]+/gu, ' ').trim();
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
}
