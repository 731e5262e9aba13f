/**
 * Explains that a token link is not of the service: its refresh token would be sent to another service, and be spent or
 * revealed. Names only origins, because the link is secret.
 *
 * @param origin where the service gives out its links, if not at its own address
 * @returns undefined if the link is of the service
 */
export function foreignLink(
  link: string,
  { recruitingUrl, origin }: { recruitingUrl: string; origin: string | undefined },
): string | undefined {
  const from = new URL(link).origin;
  if (from === new URL(recruitingUrl).origin || from === origin) return undefined;
  return (
    `is at ${from}, but RECRUITING_URL is ${recruitingUrl}, which would get its refresh token. ` +
    'Nothing was sent, and the link still works. Correct the link or RECRUITING_URL. If the service of RECRUITING_URL ' +
    `gives out its links at ${from}, set TOKEN_LINK_ORIGIN=${from}.`
  );
}
