import { createSealer } from '../../../src/tokens/store/seal.ts';
import {
  openDocument,
  sealDocument,
  type HeldClaim,
  type TokenDocument,
} from '../../../src/tokens/store/token-document.ts';
import type { PostgresServer } from './server.ts';

const sealer = createSealer([]);

/** What a store without a key holds. */
export async function documentAt(server: PostgresServer, schema: string): Promise<TokenDocument> {
  const [row] = await server.query(`SELECT document FROM ${schema}.recruiting_token_document`);
  return openDocument(row!['document'] as string, sealer);
}

/** Changes the claim of the current set, as a clock that was set does. */
export async function alterClaim(
  server: PostgresServer,
  schema: string,
  change: (claim: HeldClaim) => HeldClaim,
): Promise<void> {
  const document = await documentAt(server, schema);
  const [set] = document.sets;
  set!.claim = change(set!.claim!);
  const sealed = sealDocument(document, sealer).replaceAll("'", "''");
  await server.query(`UPDATE ${schema}.recruiting_token_document SET document = '${sealed}'`);
}
