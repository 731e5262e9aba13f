export interface GraphqlAnswer {
  extensions?: Record<string, unknown>;
  data?: Record<string, unknown> | null;
  errors?: {
    message: string;
    path?: (string | number)[];
    extensions: Record<string, unknown>;
  }[];
}

export type Question = [
  query: string,
  variables?: Record<string, unknown>,
  headers?: Record<string, string>,
];

/** Sends an operation to a GraphQL endpoint over HTTP. */
export async function askAt(
  url: string,
  ...[query, variables = {}, headers = {}]: Question
): Promise<GraphqlAnswer> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ query, variables }),
  });
  return (await response.json()) as GraphqlAnswer;
}
