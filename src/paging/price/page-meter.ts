import type { Account } from './accounts.ts';
import { refusal, type PagesRefused } from './pages-refused.ts';

/** Counts the upstream's pages that one operation costs, and charges them to its caller. */
export interface PageMeter {
  /** The one of the caller, for all operations. */
  readonly account: Account;
  /**
   * For pages that are about to be asked for.
   *
   * @param isCharged the caller's minute has paid for them already, by another operation that waits for the same
   * @throws PagesRefused
   */
  pay(pages: number, options?: { readonly isCharged: boolean }): void;
  /** Before work that is known to cost so much. @throws PagesRefused */
  afford(pages: number): void;
}

export interface Payer {
  /** The same name, the same minute. */
  readonly name: string;
  /** Whether an operation may cost more than a few pages. */
  readonly mayDrain: boolean;
}

/** 500 records, which is the largest `first` unless the operator allows more, and the way to where they begin. */
export const A_FEW_PAGES = 12;

export function createPageMeter(account: Account, mayDrain: boolean): PageMeter {
  let paid = 0;
  return {
    account,
    pay: (pages, { isCharged } = { isCharged: false }) => {
      paid += pages;
      check(paid);
      if (!isCharged) account.take(pages);
    },
    afford: (pages) => {
      check(paid + pages);
      account.check(pages);
    },
  };

  function check(pages: number): void {
    if (pages > A_FEW_PAGES && !mayDrain) throw needsDrain();
  }
}

/**
 * One payment for work that several wait for: of operations of one caller, one pays for all.
 *
 * @returns those that cannot pay, and why
 */
export function payTogether(
  meters: Iterable<PageMeter>,
  pages: number,
): ReadonlyMap<PageMeter, unknown> {
  const charged = new Set<string>();
  const refused = new Map<PageMeter, unknown>();
  for (const meter of meters) {
    try {
      meter.pay(pages, { isCharged: charged.has(meter.account.name) });
      charged.add(meter.account.name);
    } catch (error) {
      refused.set(meter, error);
    }
  }
  return refused;
}

function needsDrain(): PagesRefused {
  return refusal(
    'FORBIDDEN',
    `This operation costs more than ${A_FEW_PAGES} pages of the recruiting service, and this credential does not have the scope "drain", ` +
      'which that needs. Ask for less at a time; the operator of this gateway can give the scope.',
  );
}
