import { parse } from 'graphql';
import { expect, test } from 'vitest';
import type { ServiceOptions } from '../service/service.ts';
import { blocksOf, blockWith, DOCUMENTS, inlineCode } from '../support/docs/documents.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { compose } from '../support/supergraph/composition.ts';
import { runHere } from '../support/gateway/run-here.ts';

test('the operations of the README are answered by the sandbox, with records', async () => {
  expect(await answersOfReadme({})).toEqual(RECORDS);
});

const RECORDS = [
  { data: { allPersons: expect.toSatisfy((list: unknown[]) => list.length === 137) } },
  {
    data: {
      personsConnection: {
        edges: Array.from({ length: 3 }, () => ({
          cursor: expect.any(String),
          node: { id: expect.any(String), firstName: expect.any(String) },
        })),
        pageInfo: { hasNextPage: true, endCursor: expect.any(String) },
      },
    },
  },
  { data: { person: { firstName: expect.any(String) } } },
];

async function answersOfReadme(options: ServiceOptions): Promise<unknown[]> {
  await using gateway = await startGatewayOverService(options);
  const answers = [];
  for (const { language, text } of blocksOf('README.md')) {
    if (language === 'graphql') answers.push(await gateway.ask(text, { first: 3 }));
  }
  return answers;
}

/** The operations in sentences, and what they return. */
const INLINE: Record<string, object> = {
  'persons(first: 2) { items { id } pageInfo { hasNextPage endCursor } }': {
    persons: { items: [{}, {}], pageInfo: { hasNextPage: true } },
  },
  'allPersons @stream(initialCount: 50) { id }': {
    allPersons: Array.from({ length: 137 }, () => ({})),
  },
  '_service { sdl }': { _service: { sdl: expect.stringContaining('type Person @key') } },
};

test('each operation in a sentence is answered', async () => {
  await using gateway = await startGatewayOverService();
  const documented = new Set(DOCUMENTS.flatMap(inlineCode).filter(isOperation));
  expect([...documented].toSorted()).toEqual(Object.keys(INLINE).toSorted());
  for (const [code, data] of Object.entries(INLINE)) {
    const { errors, ...answer } = await gateway.ask(operationOf(code));
    expect(errors).toBeUndefined();
    expect(answer).toMatchObject({ data });
  }
});

/** Selections with braces; names of metrics, file formats and type definitions are not selections. */
function isOperation(code: string): boolean {
  if (!/\{.*\}$/.test(code) || /^(type|schema|recruiting_)/.test(code)) return false;
  try {
    return parse(operationOf(code)).definitions.length === 1;
  } catch {
    return false;
  }
}

function operationOf(code: string): string {
  return code.startsWith('{') ? code : `{ ${code} }`;
}

test('the type by which another subgraph extends persons composes', async () => {
  const { stdout } = await runHere(['schema', 'print', '--subgraph']);
  const extension = blockWith('docs/supergraph.md', 'salaryBand: String');
  const { errors, publicSdl } = compose([
    { name: 'recruiting', sdl: stdout, url: '' },
    {
      name: 'payroll',
      url: '',
      sdl: `extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key"])\n${extension}`,
    },
  ]);
  expect(errors).toBeUndefined();
  expect(publicSdl).toMatch(/type Person \{[^}]*salaryBand: String/);
});
