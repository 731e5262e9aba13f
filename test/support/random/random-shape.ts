import {
  objectShape,
  type AbstractShape,
  type FieldShape,
  type LeafShape,
  type ObjectShape,
  type Shape,
  type TypenameShape,
} from '../../../src/answers/shape.ts';

/** Returns a whole number from 0 up to this one, exclusive. */
export type Choose = (below: number) => number;

/** Makes any shape that a selection could have, of the given depth. */
export function randomShape(choose: Choose, depth: number): Shape {
  const of = { nullable: choose(2) === 0, type: 'T' };
  const kinds = depth > 0 ? 11 : 8;
  const kind = choose(kinds);
  if (kind === 8) return { ...of, kind: 'list', of: randomShape(choose, depth - 1) };
  if (kind === 9) return randomObject(choose, depth - 1);
  if (kind === 10) return randomAbstract(choose, depth - 1, of);
  return { ...of, ...LEAVES[kind % LEAVES.length]! };
}

const LEAVES: readonly Pick<LeafShape, 'kind' | 'values'>[] = [
  { kind: 'string' },
  { kind: 'id' },
  { kind: 'int' },
  { kind: 'float' },
  { kind: 'boolean' },
  { kind: 'any' },
  { kind: 'enum', values: new Set(['NEW', 'NEWER', 'x', 'hired']) },
];

/** Makes some of its fields silent: at the beginning, between the others, or all of them. */
export function randomObject(choose: Choose, depth: number, upstream = 'Person'): ObjectShape {
  const fields: FieldShape[] = [];
  const count = 1 + choose(4);
  const silence = choose(3);
  for (let i = 0; i < count; i += 1) {
    const key = `${KEYS[choose(KEYS.length)]!}${i}`;
    if (choose(5) === 0) {
      const shape: TypenameShape = {
        kind: 'typename',
        upstream,
        served: choose(2) === 0 ? upstream : `Rs${upstream}`,
      };
      fields.push({ key, shape, isSilent: false });
      continue;
    }
    const isSilent = silence === 0 ? choose(2) === 0 : silence === 1 && i === 0;
    const plain = isSilent ? ANY_ID : randomShape(choose, depth);
    const isGlobal = GLOBAL.has(plain.kind) && choose(3) === 0;
    const shape = isGlobal ? { ...(plain as LeafShape), globalIdOf: upstream } : plain;
    fields.push({
      key,
      ...(isGlobal && choose(2) === 0 && { sentKey: `_rsGlobal6_Person_${key}` }),
      shape,
      isSilent,
      ...((isSilent || shape.kind === 'id') && { idOf: upstream }),
    });
  }
  return objectShape({ nullable: choose(2) === 0, type: upstream }, fields);
}

const GLOBAL: ReadonlySet<string> = new Set(['string', 'id', 'int', 'float', 'enum']);
const ANY_ID = { kind: 'any', nullable: true, type: 'ID' } as const;
const KEYS = ['a', 'id', 'name', '_rsId', 'constructor', '__proto__'];

function randomAbstract(
  choose: Choose,
  depth: number,
  of: { nullable: boolean; type: string },
): AbstractShape {
  const types = ['Person', 'Per', 'Robot'].map(
    (name) => [name, randomObject(choose, depth, name)] as const,
  );
  const shapes = new Map(types);
  return { ...of, kind: 'abstract', of: (name) => shapes.get(name), common: () => [] };
}

/** Makes an answer that matches the shape, or nearly: some values are at the limits of their types. */
export function randomAnswer(shape: Shape, choose: Choose): string {
  if (shape.nullable && choose(5) === 0) return 'null';
  switch (shape.kind) {
    case 'list':
      return `[${Array.from({ length: choose(4) }, () => randomAnswer(shape.of, choose)).join(',')}]`;
    case 'object':
      return `{${membersOf(shape, choose).join(',')}}`;
    case 'abstract': {
      const name = ['Person', 'Per', 'Robot'][choose(3)]!;
      return `{${[`"_rsType":"${name}"`, ...membersOf(shape.of(name)!, choose)].join(',')}}`;
    }
    case 'enum':
      return `"${[...shape.values!][choose(shape.values!.size)]!}"`;
    default: {
      const values = VALUES[shape.kind];
      return values[choose(values.length)]!;
    }
  }
}

function membersOf({ fields }: ObjectShape, choose: Choose): string[] {
  return fields.map(({ key, sentKey = key, shape }) => {
    if (shape.kind === 'placeholder' || shape.kind === 'refused')
      throw new Error('Nothing is filled in here.');
    const value = shape.kind === 'typename' ? `"${shape.upstream}"` : randomAnswer(shape, choose);
    return `${JSON.stringify(sentKey)}:${value}`;
  });
}

const STRINGS = [
  '""',
  '"a"',
  '"Größe 😀"',
  String.raw`"\u00e9\n\"\\"`,
  String.raw`"\ud800"`,
  '"\u007f\u2028"',
  '"then"',
];
const INTS = [
  '0',
  '-0',
  '7',
  '-12',
  '2147483647',
  '-2147483648',
  '2147483648',
  '999999999',
  '1234567890',
];
const FLOATS = [
  '0.5',
  '-0.0',
  '1E5',
  '1e-7',
  '1.0',
  '1e400',
  '12345678901234567890',
  '0.1000000000000000055511151231257827',
];

const VALUES: Readonly<Record<Exclude<LeafShape['kind'], 'enum'>, readonly string[]>> = {
  string: STRINGS,
  id: [...STRINGS, ...INTS, '12345678901234567890', '9'.repeat(400)],
  int: INTS,
  float: [...INTS, ...FLOATS],
  boolean: ['true', 'false'],
  any: [
    ...STRINGS,
    ...INTS,
    ...FLOATS,
    'true',
    '{}',
    '[]',
    '{"b":1,"a":[null,{"b":2,"b":3}],"1":0}',
    '[[],{"":-1.5e+3}]',
  ],
};
