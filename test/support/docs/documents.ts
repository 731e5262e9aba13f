import { globSync, readFileSync } from 'node:fs';

export const DOCUMENTS: readonly string[] = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'ARCHITECTURE.md',
  'DECISIONS.md',
  'examples/README.md',
  ...globSync('docs/*.md').toSorted(),
];

/** A fenced block of a document. */
export interface Block {
  readonly document: string;
  /** Empty if the fence names none. */
  readonly language: string;
  readonly text: string;
}

export function blocksOf(document: string): Block[] {
  const fences = read(document).matchAll(/^```(\w*)\n([^]*?)^```/gm);
  return [...fences].map(([, language, text]) => ({ document, language: language!, text: text! }));
}

/** The only block of a document that contains this. */
export function blockWith(document: string, content: string): string {
  const blocks = blocksOf(document).filter(({ text }) => text.includes(content));
  if (blocks.length === 1) return blocks[0]!.text;
  throw new Error(`${document} has ${blocks.length} blocks with ${content}`);
}

/** The texts between backquotes, in sentences and tables. */
export function inlineCode(document: string): string[] {
  const prose = read(document).replaceAll(/^```[^]*?^```/gm, '');
  return [...prose.matchAll(/`([^`]+)`/g)].map(([, code]) =>
    code!.replaceAll(/\s+/g, ' ').replaceAll('\\|', '|'),
  );
}

function read(path: string): string {
  return readFileSync(path, 'utf8');
}
