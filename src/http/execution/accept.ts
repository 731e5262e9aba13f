/** How an operation that asks for parts is answered: in parts, whole, or not at all. */
export type Delivery = 'parts' | 'whole' | 'none';

/**
 * What a caller can read. Only who names `multipart/mixed` gets parts; `*\/*` is no sign of a client that
 * can put them together, and JSON is what everybody reads.
 */
export function deliveryFor(accept = ''): Delivery {
  const types = mediaTypes(accept);
  const multipart = types.filter(({ name }) => name === 'multipart/mixed');
  if (multipart.some(({ parameters }) => isSpoken(parameters))) return 'parts';
  if (multipart.length > 0) return 'none';
  return types.length > 0 && types.every(({ name }) => name === 'text/event-stream')
    ? 'none'
    : 'whole';
}

/** The proposal of this day, which Yoga writes. */
export const SPEC = '20220824';

function isSpoken(parameters: ReadonlyMap<string, string>): boolean {
  return [...parameters].every(
    ([name, value]) => !name.endsWith('spec') || (name === 'deferspec' && value === SPEC),
  );
}

interface MediaType {
  readonly name: string;
  readonly parameters: ReadonlyMap<string, string>;
}

function mediaTypes(accept: string): readonly MediaType[] {
  return accept
    .toLowerCase()
    .split(',')
    .map((range) => {
      const [name = '', ...parameters] = range.split(';').map((part) => part.trim());
      return { name, parameters: new Map(parameters.map(nameAndValue)) };
    })
    .filter(({ name, parameters }) => name !== '' && Number(parameters.get('q') ?? 1) !== 0);
}

function nameAndValue(parameter: string): [string, string] {
  const [name = '', value = ''] = parameter.split('=').map((part) => part.trim());
  return [name, value.replaceAll('"', '')];
}

const JSON_TYPE = 'application/json; charset=utf-8';
const GRAPHQL_TYPE = 'application/graphql-response+json; charset=utf-8';

/**
 * The content type of an answer that comes whole, as the server behind the stages chooses it: of the types that the
 * caller accepts the first that is one of ours, whatever its `q`. Undefined for a caller who accepts neither.
 */
export function jsonTypeFor(accept = '*/*'): typeof JSON_TYPE | typeof GRAPHQL_TYPE | undefined {
  if (accept === '*/*' || accept === 'application/json') return JSON_TYPE;
  for (const range of accept.replace(/\s/g, '').toLowerCase().split(',')) {
    const [name, ...parameters] = range.split(';');
    const charset = parameters.find((parameter) => parameter.includes('charset='));
    if (charset !== undefined && charset !== 'charset=utf-8') continue;
    if (name === 'application/graphql-response+json') return GRAPHQL_TYPE;
    if (name === 'application/json' || name === 'application/*' || name === '*/*') return JSON_TYPE;
  }
  return undefined;
}
