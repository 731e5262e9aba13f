import { readFileSync } from 'node:fs';

export const documentedSdl = readFileSync('schema/upstream.graphql', 'utf8');
