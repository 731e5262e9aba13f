import type { Plan } from './plan.ts';

/** Plans that failed once, in their shortest form: every run begins with them. */
export const FOUND: readonly Plan[] = [
  // The wall clock jumped by a year while a pair was only in a rescue file: the store took the pair for a year old, and
  // nobody used its refresh token again.
  {
    replicas: 2,
    life: 120,
    revokesOnRefresh: false,
    refusesEarly: null,
    fromLink: false,
    isPooled: false,
    ahead: 0,
    early: [
      {
        after: 0,
        do: 'trap',
        trap: { point: 'answer', effect: 'terminate', delayMs: 10, forMs: 200_000 },
        oddity: null,
      },
      {
        after: 0,
        do: 'interrupt',
        interruption: { purpose: 'save', what: 'hangs' },
        times: 8,
      },
    ],
    steps: [
      {
        after: 0,
        do: 'trap',
        trap: { point: 'claim committed', effect: 'stop', delayMs: 0, forMs: 200_000 },
        oddity: null,
      },
      { after: 20_000, do: 'meet', oddity: 'no connection' },
      { after: 0, do: 'clock', by: 7, ms: 31_536_000_000 },
    ],
    seed: -2_122_293_509,
  },
  // The same, after the database had lost the claim.
  {
    replicas: 2,
    life: 120,
    revokesOnRefresh: false,
    refusesEarly: null,
    fromLink: true,
    isPooled: true,
    ahead: 0,
    early: [
      {
        after: 0,
        do: 'trap',
        trap: { point: 'answer', effect: 'strand', delayMs: 0, forMs: 200_000 },
        oddity: null,
      },
    ],
    steps: [
      { after: 0, do: 'meet', oddity: 'no connection' },
      { after: 0, do: 'clock', by: 1, ms: 31_536_000_000 },
      { after: 0, do: 'restoreBackup', lost: 2 },
    ],
    seed: 495_935_769,
  },
  // A move whose target went down when it had the set was taken back: the set had two owners, and could not be moved.
  {
    replicas: 3,
    life: 120,
    revokesOnRefresh: false,
    refusesEarly: null,
    fromLink: false,
    isPooled: false,
    ahead: 0,
    early: [
      {
        after: 0,
        do: 'trap',
        trap: { point: 'answer', effect: 'strand', delayMs: 0, forMs: 200_000 },
        oddity: null,
      },
    ],
    steps: [
      {
        after: 0,
        do: 'move',
        interruption: { purpose: 'import', what: 'committed, goes down' },
        times: 1,
        killAfterMs: null,
      },
      { after: 0, do: 'kill', by: 0 },
    ],
    seed: 1_642_918_577,
  },
  // A clock that jumped by a year made a pair in a rescue file look expired, because a failover had lost what it followed.
  {
    replicas: 2,
    life: 120,
    revokesOnRefresh: false,
    refusesEarly: null,
    fromLink: false,
    isPooled: false,
    ahead: 0,
    early: [
      {
        after: 0,
        do: 'trap',
        trap: { point: 'save committed', effect: 'kill', delayMs: 0, forMs: 200_000 },
        oddity: null,
      },
    ],
    steps: [
      {
        after: 0,
        do: 'trap',
        trap: { point: 'answer', effect: 'strand', delayMs: 0, forMs: 200_000 },
        oddity: null,
      },
      { after: 20_000, do: 'meet', oddity: 'no connection' },
      { after: 0, do: 'clock', by: 0, ms: 31_536_000_000 },
      { after: 0, do: 'failOver', lost: 2 },
    ],
    seed: 125_380_552,
  },
  // A gateway that found another's set in the store, and so did not import its link, kept nothing of what it had read.
  {
    replicas: 2,
    life: 120,
    revokesOnRefresh: false,
    refusesEarly: null,
    fromLink: true,
    isPooled: true,
    ahead: 0,
    early: [
      {
        after: 0,
        do: 'trap',
        trap: { point: 'answer', effect: 'terminate', delayMs: 10, forMs: 200_000 },
        oddity: null,
      },
      {
        after: 0,
        do: 'interrupt',
        interruption: { purpose: 'read', what: 'not committed' },
        times: 8,
      },
    ],
    steps: [{ after: 60, do: 'failOver', lost: 1 }],
    seed: 210_356_720,
  },
  // A replica that started on an older copy of the database sent a spent token before the others had saved the next pair.
  {
    replicas: 3,
    life: 120,
    revokesOnRefresh: false,
    refusesEarly: null,
    fromLink: false,
    isPooled: false,
    ahead: 0,
    early: [{ after: 0, do: 'meet', oddity: 'no connection' }],
    steps: [
      { after: 20_000, do: 'kill', by: 0 },
      { after: 0, do: 'failOver', lost: 2 },
    ],
    seed: 1_378_033_106,
  },
  // The pair of a 503 had replaced an earlier one when the document was deleted, and the earlier one was missed.
  {
    replicas: 3,
    life: 120,
    revokesOnRefresh: false,
    refusesEarly: null,
    fromLink: false,
    isPooled: false,
    ahead: 0,
    early: [],
    steps: [
      {
        after: 0,
        do: 'trap',
        trap: { point: 'save committed', effect: 'kill', delayMs: 0, forMs: 200_000 },
        oddity: 'no connection',
      },
      {
        after: 40_000,
        do: 'trap',
        trap: { point: 'connect', effect: 'kill', delayMs: 0, forMs: 2_000 },
        oddity: 'pair with status 503',
      },
      { after: 2_000, do: 'meet', oddity: 'cut after it was processed' },
      { after: 40_000, do: 'damage', what: 'the document is deleted' },
    ],
    seed: -1_925_417_081,
  },
  // The wall clock jumped by a year before a pair went to the rescue file because the store had lost it: the file had the
  // time of before the jump, and the next start took the refresh token for expired.
  {
    replicas: 2,
    life: 120,
    revokesOnRefresh: false,
    refusesEarly: 'with status 403',
    fromLink: false,
    isPooled: false,
    ahead: 0,
    early: [{ after: 0, do: 'meet', oddity: 'late answer' }],
    steps: [
      { after: 20_000, do: 'clock', by: 0, ms: 31_536_000_000 },
      { after: 0, do: 'damage', what: 'the document is deleted' },
      { after: 0, do: 'meet', oddity: 'no connection' },
      { after: 200, do: 'restoreBackup', lost: 2 },
      { after: 0, do: 'damage', what: 'the document is deleted' },
    ],
    seed: -643_107_750,
  },
  // A refresh waited for that of another replica, which became uncertain, and /auth_check gave no clear answer: callers
  // got an error without a code.
  {
    replicas: 3,
    life: 120,
    revokesOnRefresh: false,
    refusesEarly: null,
    fromLink: false,
    isPooled: false,
    ahead: 0,
    early: [
      {
        after: 0,
        do: 'trap',
        trap: { point: 'claim', effect: 'cutOff', delayMs: 0, forMs: 200_000 },
        oddity: null,
      },
    ],
    steps: [
      {
        after: 40_000,
        do: 'trap',
        trap: { point: 'save', effect: 'kill', delayMs: 0, forMs: 200_000 },
        oddity: 'cut before it arrives',
      },
      { after: 60, do: 'unreachable', forMs: 800 },
    ],
    seed: 1_477_337_010,
  },
];
