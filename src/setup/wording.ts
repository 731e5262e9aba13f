import * as errors from '../tokens/errors.ts';
import * as health from '../tokens/health.ts';
import type { Claim, State } from '../tokens/state.ts';
import type { TokenStore } from '../tokens/store.ts';

const NEW_TOKEN =
  'have an administrator make a new token in the personal account of the recruiting service, and run `tokens import <link>';
const RECOVER = 'Run `tokens recover`, which looks for a pair that arrived and was not saved.';

/** What the operator of a gateway knows: its settings, its commands, and the personal account of the service. */
export const GATEWAY_WORDING: health.Wording = {
  users: 'the gateway',
  refusal: 'UPSTREAM_UNAUTHORIZED',
  missing: 'error',
  settings: { store: 'TOKEN_STORE', key: 'TOKEN_STORE_KEY', service: 'RECRUITING_URL' },
  steps: {
    missing: { step: `If TOKEN_STORE names the store that you mean, ${NEW_TOKEN}\`.` },
    moved: { step: 'Set TOKEN_STORE to that one for every gateway, and restart it.' },
    lost: {
      first: RECOVER,
      step: `Without one, ${NEW_TOKEN}\`. Never restore a backup: its refresh token is spent.`,
    },
    uncertain: {
      step:
        'A running gateway sends the refresh token once more in the last minutes of the access token, or right away if it has ' +
        'expired. Run `tokens recover` to do that now.',
    },
    unsaved: {
      step:
        'Repair the disk or the database before you stop that process: it saves the pair by itself. `tokens recover` and the next ' +
        'start save what is in a file.',
    },
    late: { step: 'Run `tokens refresh`, which says what prevents it.' },
    unread: { step: 'Run `tokens status`, which says why.' },
    claimed: { step: 'Run `tokens recover` then.' },
    refused: {
      first: RECOVER,
      step: `Without one, and if you know that the tokens were revoked or spent, ${NEW_TOKEN} --replace\`.`,
    },
    unauthorized: {
      step:
        'The administrator who made the token was perhaps demoted or blocked. Have the account checked; if it is in order, ' +
        `${NEW_TOKEN} --replace\`.`,
    },
    ending: { step: 'Start a gateway, or run `tokens refresh` and read its output.' },
  },
};

type Described = Pick<TokenStore, 'description'>;

export function adviceOn(trouble: health.Trouble, state: State | null, now: number): health.Advice {
  return health.adviceOn(trouble, state, now, GATEWAY_WORDING);
}

export function lineOn(trouble: health.Trouble, state: State | null, now: number) {
  return health.lineOn(trouble, state, now, GATEWAY_WORDING);
}

export function afterClaim(claim: Claim) {
  return health.afterClaim(claim, GATEWAY_WORDING);
}

export function foreignStore(store: Described, state: State, serviceUrl: string) {
  return errors.foreignStore(store, state, serviceUrl, GATEWAY_WORDING);
}

export function storeProblem(error: unknown, store: Described) {
  return errors.storeProblem(error, store, GATEWAY_WORDING);
}
