import type { DocumentNode, OperationDefinitionNode } from 'graphql';
import { Call, type CallOrigin, type CallVariables } from './call.ts';
import { compile, type Plan } from './plan.ts';
import { Shared, type EngineParts } from './shared.ts';

/** Compiles operations of the served schema, and makes the calls that they are answered in. */
export class Engine {
  readonly #parts: EngineParts;
  readonly #shared: Shared;

  constructor(parts: EngineParts) {
    this.#parts = parts;
    this.#shared = new Shared(parts);
  }

  /** Compiles an operation, which is valid. @throws coded errors for one that can never be answered */
  plan(document: DocumentNode, operation: OperationDefinitionNode): Plan {
    return compile(this.#shared, document, operation);
  }

  createCall(variables: CallVariables, origin: CallOrigin): Call {
    return new Call(variables, origin, this.#parts);
  }

  /** Drains that run, and drains that wait for their turn. */
  get drainLoad() {
    return this.#shared.drainLoad;
  }

  /** Ends what runs in the background. */
  close(): void {
    this.#shared.close();
  }
}
