import type { Choose } from './random-shape.ts';

/** Changes the bytes of an answer at that many random places, mostly into something similar. */
export function mutated(bytes: Buffer, choose: Choose, times: number): Buffer {
  let now = bytes;
  for (let i = 0; i < times; i += 1) now = MUTATIONS[choose(MUTATIONS.length)]!(now, choose);
  return now;
}

type Mutation = (bytes: Buffer, choose: Choose) => Buffer;

const MUTATIONS: readonly Mutation[] = [
  // A byte is lost, doubled, or replaced by another one.
  (bytes, choose) => spliced(bytes, choose(bytes.length + 1), 1, ''),
  (bytes, choose) => spliced(bytes, choose(bytes.length + 1), 0, BYTES[choose(BYTES.length)]!),
  (bytes, choose) => spliced(bytes, choose(bytes.length + 1), 1, BYTES[choose(BYTES.length)]!),
  (bytes, choose) => spliced(bytes, choose(bytes.length + 1), 1, Buffer.from([choose(256)])),
  // A value is replaced by another one.
  (bytes, choose) => replaced(bytes, choose, VALUE, VALUES),
  (bytes, choose) => replaced(bytes, choose, VALUE, VALUES),
  (bytes, choose) => replaced(bytes, choose, /(?<=")[^"\\]*(?=")/g, STRINGS),
  // Insignificant white space.
  (bytes, choose) =>
    replaced(bytes, choose, /(?<=[{}[\]:,])|(?=[{}[\]:,])/g, [' ', '\n', '\t', '\r\n']),
  // A member is repeated, moved or removed.
  (bytes, choose) => replaced(bytes, choose, MEMBER, ['', '$&$&']),
  (bytes, choose) =>
    replaced(bytes, choose, new RegExp(`(${MEMBER.source})(${MEMBER.source})`, 'g'), ['$2$1']),
  (bytes, choose) =>
    replaced(bytes, choose, /"_rsType":"\w+"/g, [
      '"_rsType":"Nobody"',
      '"_rsType":"Robot"',
      '"_rsType":null',
      String.raw`"_rsType":"Per\u0073on"`,
    ]),
  // The bytes are cut off, or get a byte order mark in front or something at the end.
  (bytes, choose) => bytes.subarray(0, choose(bytes.length + 1)),
  (bytes) => Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes]),
  (bytes, choose) => Buffer.concat([bytes, Buffer.from(['\n', '}', '\0', 'x'][choose(4)]!)]),
];

const BYTES = ['\x7f', 'é', '😀', ...'{}[]",:\\ \n\t\0.-+eE019ntfu'.split('')];
const VALUE = /(?<=[:[,])(?:null|true|false|-?[\d.eE+-]+|"(?:[^"\\]|\\.)*"|\[\]|\{\})(?=[,\]}])/g;
const VALUES = [
  'null',
  'true',
  'false',
  '0',
  '-0',
  '-',
  '00',
  '01',
  '1.',
  '.5',
  '1.0',
  '1E5',
  '1e400',
  '1e-400',
  '-0.0',
  '2147483648',
  '-2147483649',
  '12345678901234567890',
  '9'.repeat(309),
  '9'.repeat(310),
  '"1"',
  '""',
  '"NEW"',
  String.raw`"\u004eEW"`,
  '"\\"',
  '{}',
  '[]',
  '[null]',
  '{"a0":1}',
  'nul',
  'NaN',
  'Infinity',
  'undefined',
  `${'['.repeat(60)}${']'.repeat(60)}`,
];
const STRINGS = [
  '',
  '\\',
  '\\u12',
  '\\uD83D\\uDE00',
  '\\x',
  '\\/',
  '\u2028',
  '\x01',
  'é',
  'NEW',
  '_rsType',
  'a0',
];
const MEMBER = /"\w+":(?:null|true|false|-?[\d.eE+-]+|"(?:[^"\\]|\\.)*"),/;

function replaced(bytes: Buffer, choose: Choose, what: RegExp, by: readonly string[]): Buffer {
  const text = bytes.toString('latin1');
  const places = [...text.matchAll(new RegExp(what.source, 'g'))];
  if (places.length === 0) return bytes;
  const place = places[choose(places.length)]!;
  const [match] = place;
  const replacement = Buffer.from(by[choose(by.length)]!).toString('latin1');
  const written = replacement.includes('$')
    ? match.replace(new RegExp(what.source), replacement)
    : replacement;
  return Buffer.from(
    `${text.slice(0, place.index)}${written}${text.slice(place.index + match.length)}`,
    'latin1',
  );
}

function spliced(bytes: Buffer, at: number, gone: number, by: string | Buffer): Buffer {
  return Buffer.concat([
    bytes.subarray(0, at),
    Buffer.from(by as string),
    bytes.subarray(at + gone),
  ]);
}
