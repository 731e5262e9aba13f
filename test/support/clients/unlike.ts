let made = 0;

/** The first person, asked for in words of their own: queries that are alike share one request to the service. */
export function personUnlikeOthers(): string {
  made += 1;
  return `{ persons(first: 1) { ...Page${made} } } fragment Page${made} on PersonPage { items { id } }`;
}
