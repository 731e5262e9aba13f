import { graphql, useLazyLoadQuery, usePaginationFragment } from 'react-relay';
import type { vacanciesQuery } from './__generated__/vacanciesQuery.graphql.ts';
import type { vacancies_candidates$key } from './__generated__/vacancies_candidates.graphql.ts';

/** The first vacancies, with `first` or `last` of the candidates of each. */
export function useVacancies(variables: vacanciesQuery['variables']) {
  return useLazyLoadQuery<vacanciesQuery>(
    graphql`
      query vacanciesQuery($first: Int, $last: Int) {
        allVacancies(limit: 2) {
          id
          title
          ...vacancies_candidates @arguments(first: $first, last: $last)
        }
      }
    `,
    variables,
  ).allVacancies;
}

/** The candidates of one vacancy, page by page, in both directions. */
export function useCandidates(vacancy: vacancies_candidates$key) {
  return usePaginationFragment<vacanciesQuery, vacancies_candidates$key>(
    graphql`
      fragment vacancies_candidates on Vacancy
      @refetchable(queryName: "vacanciesCandidatesQuery")
      @argumentDefinitions(
        first: { type: "Int" }
        after: { type: "String" }
        last: { type: "Int" }
        before: { type: "String" }
      ) {
        candidatesConnection(first: $first, after: $after, last: $last, before: $before)
          @connection(key: "vacancies_candidatesConnection") {
          edges {
            node {
              id
              person {
                firstName
              }
            }
          }
        }
      }
    `,
    vacancy,
  );
}
