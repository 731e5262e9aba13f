/** Runs in a browser, which gets nothing of this module except the function itself. */

/** Sends requests to the gateway in every way that a page can, and returns everything that it could read. */
export async function attack(gateway: string): Promise<Record<string, string>> {
  const query = '{ me { id } }';
  const mutation = 'mutation { rename(id: 1, name: "Mallory") { id } }';
  const inAddress = `${gateway}/graphql?query=${encodeURIComponent(query)}`;
  const json = JSON.stringify({ query: mutation });
  const read: Record<string, string> = {};

  const asks: Record<string, [string, RequestInit]> = {
    'a simple GET': [inAddress, {}],
    'a GET with an allowed header': [inAddress, { headers: { accept: 'application/json' } }],
    'a GET with a header that asks first': [
      inAddress,
      { headers: { 'x-apollo-operation-name': 'A' } },
    ],
    'a POST of JSON': [`${gateway}/graphql`, post('application/json')],
    'a POST of text': [`${gateway}/graphql`, post('text/plain')],
    'a POST of text that says JSON': [`${gateway}/graphql`, post('text/plain;application/json')],
    'a POST of a form': [
      `${gateway}/graphql`,
      { method: 'POST', body: new URLSearchParams({ query }) },
    ],
    'a POST of parts': [`${gateway}/graphql`, { method: 'POST', body: parts() }],
    'another method': [`${gateway}/graphql`, { ...post('application/json'), method: 'PUT' }],
    'a probe': [`${gateway}/ready`, {}],
  };
  const modes: [string, RequestInit][] = [
    ['', {}],
    [', opaque', { mode: 'no-cors' }],
    [', with credentials', { credentials: 'include' }],
  ];
  await Promise.all(
    Object.entries(asks).flatMap(([name, [url, init]]) =>
      modes.map(async ([mode, more]) => {
        const response = await fetch(url, { ...init, ...more }).catch(() => undefined);
        read[name + mode] = (await response?.text().catch(() => '')) ?? '';
      }),
    ),
  );
  for (const type of ['application/json', 'text/plain']) {
    navigator.sendBeacon(`${gateway}/graphql`, new Blob([json], { type }));
  }
  await Promise.all([
    load('a script', Object.assign(document.createElement('script'), { src: inAddress })),
    load('a picture', Object.assign(document.createElement('img'), { src: inAddress })),
    load('a frame', Object.assign(document.createElement('iframe'), { src: inAddress })),
    load(
      'GraphiQL in a frame',
      Object.assign(document.createElement('iframe'), { src: `${gateway}/graphql` }),
    ),
    form('application/x-www-form-urlencoded'),
    form('multipart/form-data'),
    form('text/plain'),
    events(),
    socket(),
  ]);
  return read;

  function post(type: string): RequestInit {
    return { method: 'POST', headers: { 'content-type': type }, body: json };
  }

  function parts(): FormData {
    const data = new FormData();
    data.set('operations', json);
    data.set('map', '{}');
    return data;
  }

  function load(name: string, element: HTMLElement): Promise<void> {
    return new Promise((done) => {
      const loaded = () => {
        if (element instanceof HTMLIFrameElement) look(name, element);
        done();
      };
      element.addEventListener('load', loaded);
      element.addEventListener('error', loaded);
      document.body.append(element);
    });
  }

  function look(name: string, frame: HTMLIFrameElement): void {
    try {
      read[name] = frame.contentDocument?.body.textContent ?? '';
    } catch {
      read[name] = '';
    }
  }

  function form(enctype: string): Promise<void> {
    const frame = Object.assign(document.createElement('iframe'), { name: enctype });
    const sent = Object.assign(document.createElement('form'), {
      action: `${gateway}/graphql`,
      method: 'POST',
      enctype,
      target: enctype,
    });
    const input = document.createElement('input');
    // A text/plain form is sent as name=value, and together these two are JSON.
    input.name = enctype === 'text/plain' ? `${json.slice(0, -1)},"extensions":{"a":"` : 'query';
    input.value = enctype === 'text/plain' ? '"}}' : mutation;
    sent.append(input);
    document.body.append(frame, sent);
    const answered = new Promise<void>((done) => {
      frame.addEventListener('load', () => {
        look(`a form of ${enctype}`, frame);
        done();
      });
    });
    sent.submit();
    return answered;
  }

  function events(): Promise<void> {
    return new Promise((done) => {
      const source = new EventSource(inAddress);
      source.addEventListener('next', received);
      source.addEventListener('message', received);
      source.addEventListener('error', () => {
        source.close();
        done();
      });
    });
  }

  function received({ data }: MessageEvent): void {
    read['events'] = String(data);
  }

  function socket(): Promise<void> {
    return new Promise((done) => {
      const url = `${gateway.replace('http', 'ws')}/graphql`;
      const opened = new WebSocket(url, 'graphql-transport-ws');
      opened.addEventListener('open', () => (read['a socket'] = 'It opened.'));
      opened.addEventListener('close', () => done());
    });
  }
}
