import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import process from 'node:process';
import { createSchema, createYoga } from 'graphql-yoga';

const REVIEWS = [
  { stars: 5, text: 'A pleasure to talk to.' },
  { stars: 4, text: 'Came well prepared.' },
];

/** The second service. Of persons it knows the ids, and its own reviews. */
export const yoga = createYoga({
  schema: createSchema({
    typeDefs: readFileSync(new URL('reviews.graphql', import.meta.url), 'utf8'),
    resolvers: {
      Query: {
        reviewedPersons: (_root, { ids }: { ids: readonly string[] }) =>
          ids.map((id) => ({ id, reviews: REVIEWS })),
      },
    },
  }),
});

if (import.meta.main) {
  const server = createServer((request, response) => void yoga(request, response));
  server.listen(Number(process.env['PORT'] ?? 4001), () => console.log(server.address()));
}
