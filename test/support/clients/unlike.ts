let made = 0;

/** Requests the first person with a unique text: equal queries would share one request to the service. */
export function personUnlikeOthers(): string {
  made += 1;
  return `{ persons(first: 1) { ...Page${made} } } fragment Page${made} on PersonPage { items { id } }`;
}
