import { makeExecutableSchema } from '../../support/imitations/honest.ts';
import { sameAnswers } from '../side-by-side.ts';

const BY_ID = 'query ById($id: String!) { human(id: $id) { name } }';

sameAnswers('Star Wars', saga, [
  ['the hero', 'data', 'query Hero { hero { name } }'],
  ['the hero and the friends', 'data', 'query Hero { hero { id name friends { name } } }'],
  ['friends of friends', 'data', '{ hero { name friends { name appearsIn friends { name } } } }'],
  ['by id', 'data', '{ human(id: "1000") { name } droid(id: "2001") { name primaryFunction } }'],
  ['by a variable', 'data', BY_ID, { variables: { id: '1000' } }],
  ['by another variable', 'data', BY_ID, { variables: { id: '1002' } }],
  ['by an id that does not exist', 'data', BY_ID, { variables: { id: 'not a valid id' } }],
  ['under an alias', 'data', '{ luke: human(id: "1000") { name } }'],
  ['twice', 'data', '{ luke: human(id: "1000") { name } leia: human(id: "1003") { name } }'],
  [
    'twice with the same content',
    'data',
    '{ luke: human(id: "1000") { name homePlanet } leia: human(id: "1003") { name homePlanet } }',
  ],
  [
    'twice through a fragment',
    'data',
    '{ luke: human(id: "1000") { ...H } leia: human(id: "1003") { ...H } } fragment H on Human { name homePlanet }',
  ],
  ['that the hero is a droid', 'data', '{ hero { __typename name } }'],
  ['that the hero is a human', 'data', '{ hero(episode: EMPIRE) { __typename name } }'],
  ['a secret', 'errors', '{ hero { name secretBackstory } }'],
  ['secrets in a list', 'errors', '{ hero { name friends { name secretBackstory } } }'],
  ['a secret under an alias', 'errors', '{ mainHero: hero { name story: secretBackstory } }'],
  ['a field that does not exist', 'refused', '{ hero { favouriteSpaceship } }'],
  ['an object without fields', 'refused', '{ hero }'],
  ['a scalar with fields', 'refused', '{ hero { name { first } } }'],
  ['a field of a droid on a character', 'refused', '{ hero { name primaryFunction } }'],
  [
    'a field of a droid in a fragment',
    'data',
    '{ hero { name ... on Droid { primaryFunction } ...D } } fragment D on Droid { primaryFunction }',
  ],
]);

sameAnswers('introspection of Star Wars', saga, [
  [
    'a type',
    'data',
    '{ __type(name: "Droid") { name kind interfaces { name } fields { name type { name kind ofType { name kind } } } } }',
  ],
  [
    'an interface',
    'data',
    '{ __type(name: "Character") { name kind possibleTypes { name } description } }',
  ],
  [
    'an enum',
    'data',
    '{ __type(name: "Episode") { name enumValues(includeDeprecated: true) { name description isDeprecated } } }',
  ],
  ['a type that does not exist', 'data', '{ __type(name: "Unknown") { name } }'],
  [
    'a type by a variable',
    'data',
    'query ($name: String!) { x: __type(name: $name) { description kind } hero { name } }',
    { variables: { name: 'Human' } },
  ],
  [
    'the root types',
    'data',
    '{ __schema { queryType { name } mutationType { name } subscriptionType { name } } }',
  ],
  [
    'the arguments of the built-in directives',
    'data',
    '{ __type(name: "__Directive") { fields { name } } }',
  ],
]);

const story = () => {
  throw new Error('secretBackstory is secret.');
};

function saga() {
  const make = (id: string, name: string, friends: readonly string[], more: object) => ({
    id,
    name,
    friends: (): unknown[] =>
      friends.map((friend) =>
        Promise.resolve(characters.find((character) => character.id === friend)),
      ),
    appearsIn: ['NEWHOPE', 'EMPIRE', 'JEDI'],
    secretBackstory: story,
    ...more,
  });
  const human = { __typename: 'Human', homePlanet: 'Tatooine' };
  const droid = { __typename: 'Droid', primaryFunction: 'Astromech' };
  const characters: ReturnType<typeof make>[] = [
    make('1000', 'Luke Skywalker', ['1002', '1003', '2000', '2001'], human),
    make('1002', 'Han Solo', ['1000', '1003', '2001'], { ...human, homePlanet: null }),
    make('1003', 'Leia Organa', ['1000', '1002', '2000', '2001'], {
      ...human,
      homePlanet: 'Alderaan',
    }),
    make('2000', 'C-3PO', ['1000', '1002', '1003', '2001'], {
      ...droid,
      primaryFunction: 'Protocol',
    }),
    make('2001', 'R2-D2', ['1000', '1002', '1003'], droid),
  ];
  const byId = (_: unknown, { id }: { id: string }) =>
    characters.find((character) => character.id === id);
  const schema = makeExecutableSchema(
    `"One of the films."
     enum Episode { "1977" NEWHOPE "1980" EMPIRE JEDI }
     "A character of the saga."
     interface Character { id: String! name: String friends: [Character] appearsIn: [Episode] secretBackstory: String }
     "A humanoid."
     type Human implements Character {
       id: String! name: String friends: [Character] appearsIn: [Episode] homePlanet: String secretBackstory: String
     }
     type Droid implements Character {
       id: String! name: String friends: [Character] appearsIn: [Episode] secretBackstory: String primaryFunction: String
     }
     type Query { hero(episode: Episode): Character human(id: String!): Human droid(id: String!): Droid }`,
    {
      Query: {
        hero: (_: unknown, { episode }: { episode?: string }) =>
          characters[episode === 'EMPIRE' ? 0 : 4],
        human: byId,
        droid: byId,
      },
    },
  );
  return { schema };
}
