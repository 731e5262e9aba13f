/** The settings of a gateway for anybody over a service, whose tokens are in a folder. */
export function settingsOver(
  service: { readonly url: string; readonly tokenLink: string },
  folder: { file(name: string): string },
) {
  return {
    RECRUITING_URL: service.url,
    TOKEN_LINK: service.tokenLink,
    TOKEN_STORE: `sqlite:${folder.file('tokens.db')}`,
    ALLOW_ANONYMOUS: 'true',
  };
}
