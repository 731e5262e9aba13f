/** The kinds of credentials that callers can send. */
export interface AcceptedCredentials {
  readonly apiKeys: boolean;
  readonly tokens: boolean;
}

export interface CredentialBar {
  readonly html: string;
  readonly style: string;
  /** Has to run before GraphiQL starts, which sends its first request at once. */
  readonly script: string;
}

/**
 * A field above GraphiQL for the caller's credential, which is then sent with the operations of all tabs and with the
 * request for the documentation. A header that is typed into a tab takes precedence.
 *
 * The credential exists only in the memory of the page: not in its storage or address, and, because the field is not
 * one for passwords and is not restored after a reload, not in those of the browser either.
 */
export function credentialBar({ apiKeys, tokens }: AcceptedCredentials): CredentialBar {
  const kinds = [apiKeys ? 'an API key' : [], tokens ? 'a bearer token' : []].flat();
  const kind = kinds.join(' or ').replaceAll(/\ban? /g, '');
  const messages = {
    missing: `This gateway answers only callers with ${kinds.join(' or ')}. Yours stays in the memory of this page.`,
    refused: `The gateway does not accept this ${kind}. Correct it, or ask the operator of the gateway for another.`,
    accepted: 'Sent with every request of this page. Gone when the page is closed or reloaded.',
  };
  return {
    html: `<div class="credential" data-state="missing">
      <label for="credential">${kind.charAt(0).toUpperCase()}${kind.slice(1)}</label>
      <input id="credential" type="text" autocomplete="off" autocapitalize="off" spellcheck="false" />
      <output for="credential">${messages.missing}</output>
    </div>`,
    style,
    script: `
{
  const bar = document.querySelector('.credential');
  const field = bar.querySelector('input');
  const messages = ${JSON.stringify(messages)};
  let credential = '';

  const isToken = (text) => ${apiKeys && tokens ? String.raw`/^eyJ[^.]*\.[^.]*\.[^.]*$/.test(text)` : String(tokens)};
  const isHeader = (text) => /^[!-~]+$/.test(text);
  const send = globalThis.fetch;
  globalThis.fetch = async (address, init) => {
    // GraphiQL also fetches pictures that a result names, which another program may serve at this origin.
    if (new URL(address, location.href).pathname !== location.pathname) return send(address, init);
    const headers = new Headers(init?.headers);
    const isTyped = headers.has('x-api-key') || headers.has('authorization');
    if (!isTyped && isHeader(credential)) {
      if (isToken(credential)) headers.set('authorization', 'Bearer ' + credential);
      else headers.set('x-api-key', credential);
    }
    const response = await send(address, { ...init, headers });
    if (!isTyped) show(response.status !== 401 ? 'accepted' : credential === '' ? 'missing' : 'refused');
    return response;
  };

  field.addEventListener('change', take);
  field.addEventListener('paste', () => setTimeout(take));

  function take() {
    const given = field.value.trim().replace(/^bearer +/i, '');
    if (given === credential) return;
    credential = given;
    loadDocumentation();
  }

  function loadDocumentation() {
    const button = document.querySelector('button[aria-label^="Re-fetch GraphQL schema"]');
    // It is disabled while the answer to an earlier request is awaited.
    if (button && !button.disabled) button.click();
    else setTimeout(loadDocumentation, 50);
  }

  function show(state) {
    bar.dataset.state = state;
    bar.querySelector('output').textContent = messages[state];
  }
}
`,
  };
}

const style = `
body { display: flex; flex-direction: column; }
#root { flex: 1; min-height: 0; }
#root .graphiql-container { height: 100%; }
.credential {
  display: flex; gap: 12px; align-items: center; padding: 8px 16px;
  font: 14px system-ui, sans-serif; background: #f3f4f8; color: #3b4b68; border-bottom: 1px solid #d9dce5;
}
.credential input {
  width: 22em; padding: 6px 8px; font: inherit; color: inherit; background: #fff; border: 1px solid #b4bac8;
  border-radius: 4px; -webkit-text-security: disc;
}
.credential[data-state='missing'] input { border-color: #d60690; }
.credential[data-state='refused'] input, .credential[data-state='refused'] output { border-color: #c4183c; color: #c4183c; }
.graphiql-dark .credential { background: #1b2235; color: #b7c2d7; border-color: #2d3754; }
.graphiql-dark .credential input { background: #212a3f; border-color: #4a5878; }
.graphiql-dark .credential[data-state='refused'] output { color: #ff8a9f; }
`;
