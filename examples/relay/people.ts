import { graphql, useLazyLoadQuery, usePaginationFragment } from 'react-relay';
import type { peopleQuery } from './__generated__/peopleQuery.graphql.ts';
import type { people_list$key } from './__generated__/people_list.graphql.ts';

/** All people, page by page: forward with `loadNext`, or backward with `last` and `loadPrevious`. */
export function usePeople(variables: peopleQuery['variables']) {
  const query = useLazyLoadQuery<peopleQuery>(
    graphql`
      query peopleQuery($first: Int, $last: Int) {
        ...people_list @arguments(first: $first, last: $last)
      }
    `,
    variables,
  );
  return usePaginationFragment<peopleQuery, people_list$key>(
    graphql`
      fragment people_list on Query
      @refetchable(queryName: "peoplePageQuery")
      @argumentDefinitions(
        first: { type: "Int" }
        after: { type: "String" }
        last: { type: "Int" }
        before: { type: "String" }
      ) {
        personsConnection(first: $first, after: $after, last: $last, before: $before)
          @connection(key: "people_personsConnection") {
          edges {
            node {
              id
              firstName
            }
          }
        }
      }
    `,
    query,
  );
}
