import type { DocumentNode, OperationDefinitionNode } from 'graphql';
import { createCall, type Call, type CallOrigin, type CallVariables } from './call.ts';
import { compile, type Plan } from './plan.ts';
import { createShared, type EngineParts } from './shared.ts';

export type Engine = ReturnType<typeof createEngine>;

/** Compiles operations of the served schema, and makes the calls that they are answered in. */
export function createEngine(parts: EngineParts) {
  const shared = createShared(parts);
  return {
    /** Compiles an operation, which is valid. @throws coded errors for one that can never be answered */
    plan: (document: DocumentNode, operation: OperationDefinitionNode): Plan =>
      compile(shared, document, operation),

    createCall: (variables: CallVariables, origin: CallOrigin): Call =>
      createCall(parts, variables, origin),

    /** Drains that run, and drains that wait for their turn. */
    get drainLoad() {
      const { slots } = shared.lists;
      return { running: slots.taken, waiting: slots.waiting };
    },

    /** Ends what runs in the background. */
    close: (): void => shared.lists.known.forget(),
  };
}
