import type { PostgresServer } from './server.ts';

const TABLES = ['store', 'set', 'pair', 'attempt', 'ring', 'fingerprint'] as const;

/** Statements in the schema of a store, `own`, whose role has the same name. */
type Damage = (own: string) => string;

const newest = 'generation = (SELECT max(generation) FROM recruiting_token_pair)';
const allTables = TABLES.map((name) => `recruiting_token_${name}`).join(', ');

/** What can happen to the tables of a token store while gateways run. */
export const DAMAGES: Record<string, Damage> = {
  'the schema dropped': (own) => `DROP SCHEMA IF EXISTS ${own} CASCADE`,
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
  'the newest pair deleted': () => `DELETE FROM recruiting_token_pair WHERE ${newest}`,
  'all pairs and the set deleted': () =>
    'DELETE FROM recruiting_token_pair; DELETE FROM recruiting_token_set',
  'the head moved back': () =>
    'UPDATE recruiting_token_set SET head = (SELECT max(generation) FROM recruiting_token_pair) - 1',
  'the head moved ahead': () =>
    'UPDATE recruiting_token_set SET head = (SELECT max(generation) FROM recruiting_token_pair) + 7',
  'the newest pair no head any more': () =>
    `UPDATE recruiting_token_pair SET was_head = false WHERE ${newest}`,
  'the newest pair emptied': () => `UPDATE recruiting_token_pair SET pair = '' WHERE ${newest}`,
  'the newest pair altered': () =>
    `UPDATE recruiting_token_pair SET pair = overlay(pair placing 'AAAA' from 40) WHERE ${newest}`,
  'the name of the set altered': () => "UPDATE recruiting_token_set SET name = 'another'",
  'the service of the set altered': () =>
    "UPDATE recruiting_token_set SET base_url = 'https://elsewhere.test'",
  'the key of the fingerprints altered': () =>
    "UPDATE recruiting_token_ring SET key = overlay(key placing 'AAAA' from 40)",
  'a newer layout': () => 'UPDATE recruiting_token_store SET layout = 99',
  'a column dropped': () => 'ALTER TABLE recruiting_token_set DROP COLUMN IF EXISTS moved_to',
  'the rights revoked': (own) => `REVOKE ALL ON ALL TABLES IN SCHEMA ${own} FROM ${own}`,
};

/** What an operator does first, where a command of the gateway cannot. */
export const REPAIRS: Record<string, Damage> = {
  'the schema dropped': (own) => `CREATE SCHEMA ${own} AUTHORIZATION ${own}`,
  'a newer layout': () => 'UPDATE recruiting_token_store SET layout = 1',
  'the rights revoked': (own) => `GRANT ALL ON ALL TABLES IN SCHEMA ${own} TO ${own}`,
};

/** @param url the address of the store; the name of its role is that of its schema */
export async function runIn(server: PostgresServer, url: string, statements: Damage) {
  const own = new URL(url).username;
  await server.query(`SET LOCAL search_path = ${own}; ${statements(own)}`);
}
