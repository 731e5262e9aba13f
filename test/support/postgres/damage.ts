import type { PostgresServer } from './server.ts';

const TABLES = ['store', 'document'] as const;

/** Statements in the schema of a store, `name`, whose role has the same name. */
type Damage = (name: string) => string;

const allTables = TABLES.map((name) => `recruiting_token_${name}`).join(', ');

/** Damage to the tables of a token store while gateways run. */
export const DAMAGES: Record<string, Damage> = {
  'the schema dropped': (name) => `DROP SCHEMA IF EXISTS ${name} CASCADE`,
  'all tables dropped': () => `DROP TABLE IF EXISTS ${allTables} CASCADE`,
  'all tables truncated': () => `TRUNCATE ${allTables}`,
  ...Object.fromEntries(
    TABLES.map((name) => [
      `the table ${name} dropped`,
      () => `DROP TABLE IF EXISTS recruiting_token_${name} CASCADE`,
    ]),
  ),
  ...Object.fromEntries(
    TABLES.map((name) => [
      `the table ${name} truncated`,
      () => `TRUNCATE recruiting_token_${name} CASCADE`,
    ]),
  ),
  'the document emptied': () => "UPDATE recruiting_token_document SET document = ''",
  'the document altered': () =>
    "UPDATE recruiting_token_document SET document = overlay(document placing 'AAAA' from 60)",
  'a newer layout': () => 'UPDATE recruiting_token_store SET layout = 99',
  'a column dropped': () => 'ALTER TABLE recruiting_token_document DROP COLUMN IF EXISTS document',
  'the rights revoked': (name) => `REVOKE ALL ON ALL TABLES IN SCHEMA ${name} FROM ${name}`,
};

/** Repairs that an operator makes before the commands of the gateway can help. */
export const REPAIRS: Record<string, Damage> = {
  'the schema dropped': (name) => `CREATE SCHEMA ${name} AUTHORIZATION ${name}`,
  'a newer layout': () => 'UPDATE recruiting_token_store SET layout = 2',
  'the rights revoked': (name) => `GRANT ALL ON ALL TABLES IN SCHEMA ${name} TO ${name}`,
};

/** @param url the address of the store; the name of its role is that of its schema */
export async function runIn(server: PostgresServer, url: string, statements: Damage) {
  const name = new URL(url).username;
  await server.query(`SET LOCAL search_path = ${name}; ${statements(name)}`);
}
