import type { FieldNode, VariableDefinitionNode } from 'graphql';
import { gatewayError } from '../../answers/answer-errors.ts';
import { descend, member, OF, type ServiceValue } from '../../answers/envelope.ts';
import { objectShape, type FieldShape, type ShapeScope } from '../../answers/shape.ts';
import type { ErrorCode } from '../../errors.ts';
import type { Reach } from '../../schema/derived.ts';
import { argumentNode, fieldNode, variableDefinitionNode } from '../requests/request-text.ts';
import { resultReading, type ResultTelemetry } from '../requests/results.ts';
import { idKey } from './record-identity.ts';

/** How further pages of a nested list are requested: from the root, through its parent. */
export interface WayToParent {
  /** Puts the list into the fields that lead to it. @param id the variable with the parent's id */
  wrap(list: FieldNode, id: string): FieldNode;
  definitions(id: string): readonly VariableDefinitionNode[];
  /** The shape of what leads to the list, and the field with the parent's id, if it has to be compared. */
  shape(list: FieldShape): { readonly root: FieldShape; readonly id: FieldShape | undefined };
  /** Whether an answer has the right parent. @param id as the service wrote it; undefined if it is not compared */
  isReached(id: string | undefined, parentId: string | undefined): boolean;
  /** Finds the list in an answer; an error if the parent cannot be reached any more. */
  descend(
    answer: ServiceValue,
    list: { readonly key: string; readonly parentId: string | undefined },
  ): ServiceValue;
}

export function wayToParent(
  parent: string,
  reach: Reach,
  ...reading: [scope: Pick<ShapeScope, 'upstreamType'>, telemetry: ResultTelemetry]
): WayToParent {
  const steps = (reach.kind === 'id' ? [reach] : reach.steps).map(({ field, result }) => ({
    field,
    result: resultReading(result, ...reading),
  }));
  const [root, ...inner] = steps;
  const hasId = reach.kind === 'path' && reach.hasId;
  const isReached: WayToParent['isReached'] = (id, parentId) => !hasId || isSameId(id, parentId);
  return {
    wrap: (list, id) => {
      const selections = [list, ...(hasId ? [fieldNode('id', { alias: idKey(parent) })] : [])];
      const below = inner.reduceRight<readonly FieldNode[]>(
        (inside, { field, result }) => [fieldNode(field, { selections: result.select(inside) })],
        selections,
      );
      const args = reach.kind === 'id' ? { args: [argumentNode(reach.argument.name, id)] } : {};
      return fieldNode(root!.field, { selections: root!.result.select(below), ...args });
    },
    definitions: (id) =>
      reach.kind === 'path' ? [] : [variableDefinitionNode(id, reach.argument.type)],
    shape: (list) => {
      const id = hasId
        ? member(idKey(parent), { kind: 'any', nullable: true, type: 'ID' })
        : undefined;
      const parentShape = objectShape(OF, id ? [list, id] : [list]);
      const below = inner.reduceRight(
        (shape, { field, result }) => objectShape(OF, [member(field, result.shape(shape))]),
        parentShape,
      );
      return { root: member(root!.field, root!.result.shape(below)), id };
    },
    isReached,
    descend: (answer, { key, parentId }) => {
      let reached = answer;
      for (const { field, result } of steps) {
        const read = result.read(descend(reached, [field]));
        if (read.kind === 'other') return gone(parent);
        if (read.kind === 'failure') {
          return read.isMissing ? gone(parent) : { value: undefined, errors: read.errors };
        }
        reached = read.answered;
      }
      const isNull = reached.value === undefined || reached.value.isNull;
      if (isNull && reached.errors.length === 0) return gone(parent);
      if (!isNull && !isReached(reached.value?.get(idKey(parent))?.raw, parentId)) {
        return another(
          parent,
          steps.map(({ field }) => field),
        );
      }
      return descend(reached, [key]);
    },
  };
}

/** Returns the error of a parent whose id is missing in the answer, so that it cannot be requested again. */
export function withoutId(parent: string): ServiceValue {
  return failed(
    'UPSTREAM_BAD_RESPONSE',
    `The recruiting service returned this ${parent} without an id, so the further pages of its list cannot be requested.`,
  );
}

/** 12 and "12" are the same id. */
function isSameId(id: string | undefined, other: string | undefined): boolean {
  return id?.replaceAll('"', '') === other?.replaceAll('"', '');
}

function gone(parent: string): ServiceValue {
  return failed(
    'UPSTREAM_BAD_RESPONSE',
    `The recruiting service no longer has this ${parent}, so the rest of its list cannot be read. Request its parent again.`,
  );
}

function another(parent: string, path: readonly string[]): ServiceValue {
  return failed(
    'BAD_USER_INPUT',
    `Only the ${parent} at ${path.join('.')} can be reached again, and this is another one. ` +
      'Of its list, only the first page is available, if the service accepts it as part of the operation.',
  );
}

function failed(code: ErrorCode, message: string): ServiceValue {
  return { value: undefined, errors: [gatewayError(code, message, [])] };
}
