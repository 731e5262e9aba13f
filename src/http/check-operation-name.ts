import { Kind, type DocumentNode } from 'graphql';
import type { Plugin, YogaInitialContext } from 'graphql-yoga';
import { codedError } from '../errors.ts';

/** Says which operations there are, when the request names none of them. */
export const checkOperationName: Plugin<YogaInitialContext> = {
  onParse:
    () =>
    ({ context, result }) => {
      if (!isDocument(result)) return;
      const names = result.definitions.flatMap((definition) =>
        definition.kind === Kind.OPERATION_DEFINITION ? [definition.name?.value] : [],
      );
      const operationName: unknown = context.params.operationName;
      const there = names.map((name) => name ?? 'one without a name').join(', ') || 'none';
      if (operationName !== undefined && operationName !== null) {
        if (typeof operationName !== 'string') {
          throw refused(`The operationName must be a string; there is ${there}.`);
        }
        if (names.includes(operationName)) return;
        throw refused(
          `There is no operation named "${operationName}" in this document; there is ${there}.`,
        );
      }
      if (names.length === 1) return;
      throw refused(`Say with operationName which operation to run; there is ${there}.`);
    },
};

function refused(message: string) {
  return codedError('BAD_USER_INPUT', message, { extensions: { http: { status: 400 } } });
}

function isDocument(result: unknown): result is DocumentNode {
  return (result as DocumentNode | null)?.kind === Kind.DOCUMENT;
}
