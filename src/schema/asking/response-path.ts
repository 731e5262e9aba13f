import type { GraphQLResolveInfo } from 'graphql';

/** Where something is in an answer. */
export type ResponsePath = readonly (string | number)[];

export function responsePath(path: GraphQLResolveInfo['path']): ResponsePath {
  const keys: (string | number)[] = [];
  for (let step: typeof path | undefined = path; step; step = step.prev) keys.unshift(step.key);
  return keys;
}
