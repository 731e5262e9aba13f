import { buildSchema, graphql } from 'graphql';
import { json, type Reply } from './fake-upstream.ts';

/** Answers introspection as a service with this schema does. */
export function introspected(sdl: string): Reply {
  const schema = buildSchema(sdl);
  return async (...exchange) => {
    const { query } = JSON.parse(exchange[1].body) as { query: string };
    await json(await graphql({ schema, source: query }))(...exchange);
  };
}

interface KnownField {
  name: string;
  args: unknown[];
}

const NEW = ['description', 'specifiedByURL', 'isOneOf', 'isRepeatable', 'isDeprecated'];

/** The same as a service of 2016, whose introspection refuses everything that was added since. */
export function introspectedAsIn2016(sdl: string): Reply {
  const schema = buildSchema(sdl);
  return async (...exchange) => {
    const { query } = JSON.parse(exchange[1].body) as { query: string };
    if (/specifiedByURL|isOneOf|isRepeatable|args\(includeDeprecated/.test(query)) {
      return json({ errors: [{ message: 'Cannot query that.' }] }, 400)(...exchange);
    }
    const { data } = await graphql({ schema, source: query });
    const about = data as Record<string, { fields?: KnownField[] }>;
    for (const name of ['__Schema', '__Type', '__InputValue', '__Directive', '__Field']) {
      const type = about[`about${name}`];
      if (!type?.fields) continue;
      const isOld = ({ name: field }: KnownField) => name === '__Field' || !NEW.includes(field);
      type.fields = type.fields
        .filter((field) => isOld(field) || (field.name === 'description' && name !== '__Schema'))
        .map((field) => (/^(args|inputFields)$/.test(field.name) ? { ...field, args: [] } : field));
    }
    await json({ data })(...exchange);
  };
}
