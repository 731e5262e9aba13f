import {
  getNamedType,
  Kind,
  OperationTypeNode,
  print,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
  type OperationDefinitionNode,
  type SelectionNode,
  type VariableDefinitionNode,
} from 'graphql';
import { mayBePage } from '../schema/derived.ts';
import { isIncremental } from '../schema/incremental-directives.ts';
import type { ServedSchema } from '../schema/served/served-schema.ts';
import { onlyOperation } from '../selections.ts';
import type { OutgoingRequest } from '../upstream/request.ts';
import type { PreparedOperation } from './prepared-operation.ts';

type Values = Readonly<Record<string, unknown>>;

/** A request to the service, printed once for an operation. Only its variables differ from call to call. */
export class ServiceRequest {
  /** What it costs: the paged fields that it selects, at least one. */
  readonly pages: number;
  readonly #kind: OutgoingRequest['kind'];
  readonly #query: string;
  /** The body without variables. */
  readonly #bare: string;
  /** The caller's variables that it uses. */
  readonly #variables: readonly string[];

  /**
   * Keeps the name, the directives and the variables of the caller's operation. Fragments and variables that are not
   * used are left out, since a service may refuse them, and `@stream`, which is the gateway's own.
   *
   * @param added the variables of the gateway
   */
  constructor(
    { upstream, toUpstream }: ServedSchema,
    { definition, fragments }: PreparedOperation,
    selections: readonly SelectionNode[],
    added: readonly VariableDefinitionNode[] = [],
  ) {
    const { variableDefinitions = [], ...operation } = definition;
    const selecting: OperationDefinitionNode = {
      ...operation,
      selectionSet: { kind: Kind.SELECTION_SET, selections },
    };
    const definitions = [selecting, ...fragments.values()];
    const only = onlyOperation({ kind: Kind.DOCUMENT, definitions }, selecting).document;
    const types = new TypeInfo(upstream);
    const used = new Set<string>();
    let pages = 0;
    const sent: DocumentNode = visit(
      only,
      visitWithTypeInfo(types, {
        Directive: (node) => (isIncremental(node) ? null : undefined),
        Variable: ({ name }) => void used.add(name.value),
        Field: () => {
          const type = getNamedType(types.getType());
          if (type && mayBePage(upstream, type)) pages += 1;
        },
      }),
    );
    const declared = variableDefinitions.filter(({ variable }) => used.has(variable.name.value));
    const document: DocumentNode = visit(sent, {
      OperationDefinition: (node) => ({ ...node, variableDefinitions: [...declared, ...added] }),
    });
    this.pages = Math.max(1, pages);
    this.#kind = operation.operation === OperationTypeNode.MUTATION ? 'mutation' : 'query';
    this.#query = print(toUpstream(document));
    this.#bare = JSON.stringify({ query: this.#query });
    this.#variables = declared.map(({ variable }) => variable.name.value);
  }

  /**
   * @param sent the values of the caller's variables, as they were sent: the service sets its defaults
   * @param added the values of the gateway's variables
   */
  with(sent: Values, added?: Values): OutgoingRequest {
    return { kind: this.#kind, body: this.#body(sent, added) };
  }

  /** Names what is requested for these variables, whatever the values of the gateway's variables are. */
  nameWith(sent: Values): string {
    return this.#body(sent);
  }

  /** Made in one piece: V8 joins pieces when they are read, and copies a megabyte of variables once more. */
  #body(sent: Values, added?: Values): string {
    if (this.#variables.length === 0 && !added) return this.#bare;
    const variables: Record<string, unknown> = {};
    for (const name of this.#variables) if (Object.hasOwn(sent, name)) variables[name] = sent[name];
    return JSON.stringify({ query: this.#query, variables: { ...variables, ...added } });
  }
}
