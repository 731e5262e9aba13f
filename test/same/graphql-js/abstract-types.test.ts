import { makeExecutableSchema } from '../../support/imitations/honest.ts';
import { sameAnswers } from '../side-by-side.ts';

const PETS = `pets { __typename name ... on Dog { barks } ... on Cat { meows } }`;

sameAnswers('interfaces and unions', zoo, [
  ['union: without fragments', 'data', '{ either { __typename } }'],
  [
    'union: inline fragments',
    'data',
    '{ either { ... on Dog { name barks } ... on Cat { name meows } } }',
  ],
  ['union: nothing of this type is asked', 'data', '{ either { ... on Dog { barks } } }'],
  ['interface: its own fields', 'data', '{ pets { __typename name } }'],
  ['interface: inline fragments', 'data', `{ ${PETS} }`],
  [
    'interface: named fragments, several on one type',
    'data',
    `{ pets { ...D ...C ...All ...D } } fragment D on Dog { barks friends { ...All } }
     fragment C on Cat { meows } fragment All on Pet { name __typename }`,
  ],
  [
    'a condition that is an interface, on an interface',
    'data',
    '{ pets { ... on Life { kingdom } ... on Pet { name ... on Dog { ... on Life { k: kingdom } } } } }',
  ],
  [
    'a condition that is a union',
    'data',
    '{ pets { name ... on Either { __typename ... on Cat { meows } } } }',
  ],
  [
    'interfaces of an interface',
    'data',
    '{ lives { kingdom ... on Mammal { legs } ... on Dog { mother { ...M ... on Dog { barks } } } } } fragment M on Mammal { legs mother { kingdom } }',
  ],
  [
    'an object below an object of an abstract type',
    'data',
    '{ pets { friends { ... on Dog { name barks friends { name } } ... on Cat { meows } } } }',
  ],
  [
    'the same key with arguments in each type',
    'data',
    '{ pets { ... on Dog { says: sound(loud: true) } ... on Cat { says: sound(loud: false) } } }',
  ],
  [
    'the same key with another field in each type',
    'data',
    '{ pets { ... on Dog { x: barks } ... on Cat { x: meows } } }',
  ],
  [
    'one key that may be null in one type alone',
    'refused',
    '{ pets { ... on Dog { mood } ... on Cat { mood } } }',
  ],
  [
    'a name under an alias',
    'data',
    '{ pets { kind: __typename a: name ... on Cat { kind2: __typename name: meows } } }',
  ],
  [
    '__typename only in a fragment',
    'data',
    '{ pets { ... on Dog { __typename } } either { ... on Pet { t: __typename } } }',
  ],
  [
    'a fragment that is skipped',
    'data',
    '{ pets { ... on Dog @skip(if: true) { barks } ...C @include(if: false) name } } fragment C on Cat { meows }',
  ],
  ['an abstract type that is null', 'data', '{ nobody { name } noOne { __typename } }'],
  [
    'fields of an abstract type that fail',
    'errors',
    '{ pets { name ... on Dog { fails } ... on Cat { strict: fails } } }',
  ],
  ['a type that is unknown', 'errors', '{ unknown { name } pets { name } }'],
  ['a type that does not exist', 'errors', '{ wrong { name } }'],
  ['a type of another interface', 'errors', '{ other { name } either { __typename } }'],
  ['in a list, one type is unknown', 'errors', '{ someUnknown { name } }'],
  ['a field of the interface that it does not have', 'refused', '{ pets { barks } }'],
  ['a field of a union', 'refused', '{ either { name } }'],
  ['a fragment that can never be', 'refused', '{ pets { ... on Query { nobody { name } } } }'],
  [
    'fields that clash',
    'refused',
    '{ pets { ... on Dog { x: name } ... on Cat { x: barks: meows } } }',
  ],
  [
    'introspection of abstract types',
    'data',
    `{ Named: __type(name: "Pet") { kind name fields { name } interfaces { name } possibleTypes { name } enumValues { name } inputFields { name } }
       Union: __type(name: "Either") { kind name fields { name } interfaces { name } possibleTypes { name } } }`,
  ],
  [
    'introspection beside fields',
    'data',
    '{ a: __typename pets { name } __type(name: "Dog") { name } }',
  ],
]);

function zoo() {
  const dog = {
    __typename: 'Dog',
    name: 'Odie',
    barks: true,
    mood: 'good',
    kingdom: 'animals',
    legs: 4,
  };
  const cat = {
    __typename: 'Cat',
    name: 'Garfield',
    meows: false,
    mood: null,
    kingdom: 'animals',
    legs: 4,
  };
  const schema = makeExecutableSchema(
    `interface Life { kingdom: String }
     interface Mammal implements Life { kingdom: String legs: Int mother: Mammal }
     interface Pet { name: String friends: [Pet] }
     type Dog implements Pet & Life & Mammal {
       name: String barks: Boolean kingdom: String legs: Int mother: Mammal friends: [Pet]
       sound(loud: Boolean): String mood: String! fails: String
     }
     type Cat implements Pet & Life & Mammal {
       name: String meows: Boolean kingdom: String legs: Int mother: Mammal friends: [Pet]
       sound(loud: Boolean): String mood: String fails: String!
     }
     type Stone { name: String }
     union Either = Dog | Cat
     type Query {
       pets: [Pet] either: [Either] lives: [Life] nobody: Pet noOne: Either unknown: Pet wrong: Pet other: Pet
       someUnknown: [Pet]
     }`,
    {
      Query: {
        pets: () => [dog, cat, null, dog],
        either: () => [cat, Promise.resolve(dog)],
        lives: () => [dog, cat],
        unknown: () => ({ name: 'nobody knows' }),
        wrong: () => ({ __typename: 'Unicorn' }),
        other: () => ({ __typename: 'Stone' }),
        someUnknown: () => [dog, {}, cat],
      },
      Dog: dogs(() => [cat, dog]),
      Cat: dogs(() => [dog]),
    },
  );
  return { schema };

  function dogs(friends: () => unknown) {
    return {
      friends,
      mother: () => dog,
      sound: (_: unknown, { loud }: { loud?: boolean }) => (loud ? 'WOOF' : 'purr'),
      fails: () => {
        throw new Error('It has run away.');
      },
    };
  }
}
