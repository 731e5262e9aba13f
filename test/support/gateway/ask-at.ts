import { post } from '../clients/post.ts';

export interface GraphqlAnswer {
  extensions?: Record<string, unknown>;
  data?: Record<string, unknown> | null;
  errors?: {
    message: string;
    path?: (string | number)[];
    extensions: { code: string; [fact: string]: unknown };
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
  const response = await fetch(url, post({ query, variables }, headers));
  return (await response.json()) as GraphqlAnswer;
}
