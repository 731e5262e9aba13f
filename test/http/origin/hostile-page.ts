/** Runs in a browser, which gets nothing of this module except the function itself. */

/** Sends requests to the gateway in the ways that a page can, and returns everything that it could read. */
export async function attack(gateway: string): Promise<Record<string, string>> {
  const query = '{ me { id } }';
  const json = JSON.stringify({
    query: 'mutation { rename(id: 1, name: "Mallory") { id } }',
  });
  const inAddress = `${gateway}/graphql?query=${encodeURIComponent(query)}`;
  const read: Record<string, string> = {};

  const post = (type: string) => ({
    method: 'POST',
    headers: { 'content-type': type },
    body: json,
  });
  const asks: Record<string, [string, RequestInit]> = {
    'a simple GET': [inAddress, {}],
    'a GET with a header that asks first': [
      inAddress,
      { headers: { 'x-apollo-operation-name': 'A' } },
    ],
    'a POST of JSON': [`${gateway}/graphql`, post('application/json')],
    'a POST of text': [`${gateway}/graphql`, post('text/plain')],
    'a POST of text that says JSON': [`${gateway}/graphql`, post('text/plain;application/json')],
    'another method': [`${gateway}/graphql`, { ...post('application/json'), method: 'PUT' }],
    'a probe': [`${gateway}/ready`, {}],
  };
  const modes: RequestInit[] = [{}, { mode: 'no-cors' }, { credentials: 'include' }];
  await Promise.all(
    Object.entries(asks).flatMap(([name, [url, init]]) =>
      modes.map(async (mode, at) => {
        const response = await fetch(url, { ...init, ...mode }).catch(() => undefined);
        read[`${name} ${at}`] = (await response?.text().catch(() => '')) ?? '';
      }),
    ),
  );
  navigator.sendBeacon(`${gateway}/graphql`, new Blob([json], { type: 'text/plain' }));
  await Promise.all([
    loaded('a script', Object.assign(document.createElement('script'), { src: inAddress })),
    loaded('a picture', Object.assign(document.createElement('img'), { src: inAddress })),
    loaded('a frame', Object.assign(document.createElement('iframe'), { src: inAddress })),
    loaded(
      'GraphiQL in a frame',
      Object.assign(document.createElement('iframe'), { src: `${gateway}/graphql` }),
    ),
    ...['application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain'].map(form),
    new Promise<void>((done) => {
      const opened = new WebSocket(`${gateway.replace('http', 'ws')}/graphql`);
      opened.addEventListener('open', () => (read['a socket'] = 'It opened.'));
      opened.addEventListener('close', () => done());
    }),
  ]);
  return read;

  function loaded(name: string, element: HTMLElement): Promise<void> {
    return new Promise((done) => {
      const look = () => {
        try {
          const frame = element instanceof HTMLIFrameElement ? element.contentDocument : null;
          read[name] = frame?.body.textContent ?? '';
        } catch {
          read[name] = '';
        }
        done();
      };
      element.addEventListener('load', look);
      element.addEventListener('error', look);
      if (!element.isConnected) document.body.append(element);
    });
  }

  function form(enctype: string): Promise<void> {
    const frame = Object.assign(document.createElement('iframe'), { name: enctype });
    const sent = Object.assign(document.createElement('form'), {
      action: `${gateway}/graphql`,
      method: 'POST',
      enctype,
      target: enctype,
    });
    // A text/plain form is sent as name=value, and together these two are JSON.
    const name = enctype === 'text/plain' ? `${json.slice(0, -1)},"extensions":{"a":"` : 'query';
    const value = enctype === 'text/plain' ? '"}}' : query;
    sent.append(Object.assign(document.createElement('input'), { name, value }));
    // The empty frame is loaded at once, before anybody listens.
    document.body.append(frame, sent);
    const answered = loaded(`a form of ${enctype}`, frame);
    sent.submit();
    return answered;
  }
}
