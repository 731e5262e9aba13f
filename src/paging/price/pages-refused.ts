import { GraphQLError } from 'graphql';
import { codedError, type ErrorCode } from '../../errors.ts';

/** The pages are not to be had for this operation, or not now. To ask for others instead will not help. */
export class PagesRefused extends GraphQLError {
  override name = 'PagesRefused';
}

export function refusal(
  code: ErrorCode,
  message: string,
  facts: Readonly<Record<string, unknown>> = {},
): PagesRefused {
  const { extensions } = codedError(code, message, { extensions: facts });
  return new PagesRefused(message, { extensions });
}
