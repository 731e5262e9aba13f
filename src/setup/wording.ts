import * as health from '../tokens/health.ts';
import type { State } from '../tokens/state.ts';

const NEW_TOKEN =
  'have an administrator make a new token in the personal account of the recruiting service, and run `tokens import <link>';

/** What the operator of a gateway can do: its settings, its commands, and the personal account of the service. */
export const STEPS: health.Steps = {
  missing: `If TOKEN_STORE names the store that you mean, ${NEW_TOKEN}\`.`,
  moved: 'Set TOKEN_STORE to that one for every gateway, and restart it.',
  lost:
    `If \`tokens recover\` finds no pair that arrived and was not saved, ${NEW_TOKEN}\`. Never restore a backup: its refresh token ` +
    'is spent.',
  uncertain:
    'A running gateway sends the refresh token once more in the last minutes of the access token, or right away if it has ' +
    'expired. Run `tokens recover` to do that now.',
  unsaved:
    'Repair the disk or the database before you stop that process: it saves the pair by itself. `tokens recover` and the next ' +
    'start save what is in a file.',
  late: 'Run `tokens refresh`, which says what prevents it.',
  unauthorized: `Have the account checked; if it is in order, ${NEW_TOKEN} --replace\`.`,
  ending: 'Start a gateway, or run `tokens refresh` and read its output.',
};

export function lineOn(trouble: health.Trouble, state: State | null): string {
  return health.lineOn(trouble, state, STEPS);
}
