import { isSecureUrl } from '../config/values.ts';
import { adaptersPath, readAdaptersFile } from '../setup/operator-files.ts';
import { get, reasonOf, type GetAnswer } from '../tokens/service/connection.ts';
import { CommandError, type Terminal } from './terminal.ts';

/** What to do if `--against` names something else. */
export const WHERE_SDL_IS_FROM =
  'Give the path or the address of a file with SDL: `schema pull --output <file>` writes one where the tokens are.';

const MAX_MIB = 16;

interface SchemaSource {
  /** The path, or the address without its query, which may be a signature. */
  readonly name: string;
  readonly sdl: string;
  /** Reads the adapters.json beside a file. @returns undefined if there is none, and for an address */
  readonly readAdapters: () => AdaptersFile | undefined;
}

export interface AdaptersFile {
  readonly path: string;
  /** Parsed, and not checked; undefined if the file does not exist. */
  readonly content: unknown;
}

/**
 * Reads SDL from a file, or from an address with one GET, without credentials.
 *
 * @throws CommandError
 */
export async function readSdl(
  source: string,
  agent: string,
  terminal: Pick<Terminal, 'readFile' | 'proxyFor'>,
): Promise<SchemaSource> {
  if (!/^https?:\/\//i.test(source)) {
    const readAdapters = () => {
      const content = readAdaptersFile(source, terminal);
      return content === undefined ? undefined : { path: adaptersPath(source), content };
    };
    return { name: source, sdl: readFile(source, terminal), readAdapters };
  }
  const url = URL.parse(source);
  if (!url) throw new CommandError(`The address of --against is not valid. ${WHERE_SDL_IS_FROM}`);
  const name = url.origin + url.pathname;
  if (!isSecureUrl(source)) {
    throw new CommandError(
      `${name} must begin with https:// (http:// is only for this machine). Nothing was sent.`,
    );
  }
  const sdl = await download(url, name, agent, terminal.proxyFor(source));
  return { name, sdl, readAdapters: () => undefined };
}

function readFile(path: string, terminal: Pick<Terminal, 'readFile'>): string {
  try {
    return terminal.readFile(path);
  } catch (error) {
    const { code = 'unknown error' } = error as { code?: string };
    throw new CommandError(`${path} cannot be read (${code}). ${WHERE_SDL_IS_FROM}`);
  }
}

async function download(
  url: URL,
  name: string,
  agent: string,
  proxy: string | undefined,
): Promise<string> {
  let answer: GetAnswer;
  try {
    const headers = { accept: '*/*', 'user-agent': agent };
    answer = await get(url, { headers, proxy, maxBytes: MAX_MIB * 1024 * 1024 });
  } catch (error) {
    throw new CommandError(
      `${name} cannot be read (${reasonOf(error)}). Check the address, the network, HTTPS_PROXY and NODE_EXTRA_CA_CERTS.`,
    );
  }
  const { status, body } = answer;
  if (status !== 200) {
    throw new CommandError(
      `${name} answered with status ${status}. Redirects are not followed, and no credentials are sent: ` +
        'download the file with another program, and give its path.',
    );
  }
  if (body !== undefined) return body;
  throw new CommandError(`${name} is larger than ${MAX_MIB} MiB. ${WHERE_SDL_IS_FROM}`);
}
