import { hash } from 'node:crypto';
import { visit, type DocumentNode, type FieldNode, type GraphQLError } from 'graphql';
import { OWN_KEYS } from '../answers/answer-errors.ts';
import { codedError, forbidden } from '../errors.ts';
import { onlyOperation, refuseField, type Need, type ScopedUse } from '../selections.ts';
import type { Call, CallOrigin } from './call.ts';
import type { OperationPlan, PlannedDocument } from './planner.ts';

/** What a caller without the scope of a field gets: an error for the whole operation, or null with an error there. */
export type OnMissingScope = 'reject' | 'null';

export interface ScopedDocument extends PlannedDocument {
  readonly scopedUses: readonly ScopedUse[];
}

interface ScopedPlanParts {
  readonly onMissing: OnMissingScope;
  /** @throws coded errors for operations that can never be answered */
  readonly compile: (planned: PlannedDocument, grown: (bytes: number) => void) => OperationPlan;
  /** Called with the bytes of memory that the plans take more than before. */
  readonly grown: (bytes: number) => void;
  /**
   * Whether the fields that a caller may not read are removed from the operation before it is compiled. Otherwise
   * resolvers refuse them (with-additions.ts), and all callers have the same plan.
   */
  readonly removesFields: boolean;
}

/**
 * Plans an operation for callers with different scopes. Every way to an answer passes here: those of HTTP, of the
 * delegations of stitched fields, and of programs. A plan is made for each set of scopes that callers lack.
 */
export function scopedPlan(planned: ScopedDocument, parts: ScopedPlanParts): OperationPlan {
  const { onMissing, compile, grown, removesFields } = parts;
  const { scopedUses } = planned;
  if (scopedUses.length === 0) return compile(planned, grown);
  const plans = new Map<string, OperationPlan>();
  const planFor = ({ origin: { caller } }: Call): OperationPlan => {
    const missing = missingNeeds(scopedUses, caller);
    if (missing.length > 0 && onMissing === 'reject') throw missingScope(missing[0]!);
    const key = removesFields
      ? [...new Set(missing.map(({ scope }) => scope))].toSorted().join(' ')
      : '';
    const known = plans.get(key);
    if (known) return known;
    const plan = compile(key === '' ? planned : without(planned, caller), grown);
    plans.set(key, plan);
    return plan;
  };
  return {
    answer: async (call) => planFor(call).answer(call),
    stream: (call) => planFor(call).stream(call),
  };
}

type Caller = CallOrigin['caller'];

/** @param caller undefined: callers need no credential, and have every scope */
export function missingNeeds(uses: readonly ScopedUse[], caller: Caller): readonly Need[] {
  if (!caller) return [];
  return uses.flatMap(({ needs }) => needs.filter(({ scope }) => !caller.scopes.has(scope)));
}

/** The error of an operation that is refused. */
export function missingScope(need: Need): GraphQLError {
  return forbidden(describe(need));
}

/** The error of a field that is null. It does not decide the status of the answer. */
export function missingScopeAt(need: Need): GraphQLError {
  return codedError('FORBIDDEN', describe(need));
}

function describe({ subject, scope }: Need): string {
  return `${subject} needs the scope "${scope}", which this credential does not have. The operator of this gateway can grant it.`;
}

/** Removes the fields that a caller may not read. */
function without(
  { document, operation, scopedUses }: ScopedDocument,
  caller: Caller,
): PlannedDocument {
  const refused = new Map(
    scopedUses.flatMap((use): [FieldNode, Need][] => {
      const [need] = missingNeeds([use], caller);
      return need ? [[use.node, need]] : [];
    }),
  );
  const rewritten: DocumentNode = visit(onlyOperation(document, operation).document, {
    Field: (node) => {
      const need = refused.get(node);
      return need && refuseField(node, sentKeyOf(node, need), missingScopeAt(need));
    },
  });
  return onlyOperation(rewritten, operation);
}

/** Different for fields with other keys, types or errors, which are read in different ways. */
function sentKeyOf({ alias, name }: FieldNode, { subject, scope }: Need): string {
  const digest = hash('sha256', `${name.value} ${subject} ${scope}`, 'hex').slice(0, 16);
  return `${OWN_KEYS}Refused${digest}_${(alias ?? name).value}`;
}
