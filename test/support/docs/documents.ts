import { readFileSync } from 'node:fs';

/** A fenced block of a document. */
interface Block {
  /** Empty if the fence names none. */
  readonly language: string;
  readonly text: string;
}

export function blocksOf(document: string): Block[] {
  const fences = readFileSync(document, 'utf8').matchAll(/^```(\w*)\n([^]*?)^```/gm);
  return [...fences].map(([, language, text]) => ({ language: language!, text: text! }));
}

/** The only block of a document that contains this. */
export function blockWith(document: string, content: string): string {
  const blocks = blocksOf(document).filter(({ text }) => text.includes(content));
  if (blocks.length === 1) return blocks[0]!.text;
  throw new Error(`${document} has ${blocks.length} blocks with ${content}`);
}
