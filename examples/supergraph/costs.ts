import {
  getOperationAST,
  valueFromASTUntyped,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type FieldNode,
} from 'graphql';
import type { GatewayPlugin } from '@graphql-hive/gateway';

/**
 * The cost of a list that is read whole, such as `allPersons` without `limit`: Hive Gateway counts it as one record.
 * For `fieldCost` of its `demandControl`.
 */
export function costOfWholeList({ arguments: given = [] }: FieldNode, types: TypeInfo): number {
  const { limits, size } = limitedList(types);
  return given.some(({ name }) => limits.includes(name.value)) ? 0 : size;
}

/** Removes limits that are null, because `fieldCost` does not get the values of variables. */
export const removeNullLimits: GatewayPlugin = {
  onExecute({ args }) {
    const { document, variableValues = {} } = args;
    const { variableDefinitions = [] } = getOperationAST(document, args.operationName)!;
    const variables = Object.fromEntries(
      variableDefinitions.map(({ variable, defaultValue }) => {
        const usual = defaultValue && valueFromASTUntyped(defaultValue);
        const { [variable.name.value]: value = usual } = variableValues;
        return [variable.name.value, value];
      }),
    );
    const types = new TypeInfo(args.schema);
    const visitor = visitWithTypeInfo(types, {
      Argument: ({ name, value }) => {
        const isLimit = limitedList(types).limits.includes(name.value);
        return isLimit && valueFromASTUntyped(value, variables) == null ? null : undefined;
      },
    });
    args.document = visit(document, visitor);
  },
};

/** By the `@listSize` of the published schema, so that names and prefixes do not matter. */
function limitedList(types: TypeInfo): {
  /** The arguments that limit a list which is otherwise read whole; empty for other fields. */
  readonly limits: readonly string[];
  /** `size` of adapters.json, or else 1,000. */
  readonly size: number;
} {
  const field = types.getFieldDef();
  const directive = field?.astNode?.directives?.find(({ name }) => name.value === 'listSize');
  const {
    slicingArguments: limits = [],
    sizedFields,
    assumedSize = 1_000,
  } = Object.fromEntries(
    directive?.arguments?.map(({ name, value }) => [name.value, valueFromASTUntyped(value)]) ?? [],
  ) as ListSize;
  // Pages and connections have sized fields, and are one page by default.
  return limits.length === 0 || sizedFields
    ? { limits: [], size: 0 }
    : { limits, size: assumedSize };
}

interface ListSize {
  readonly slicingArguments?: readonly string[];
  readonly sizedFields?: readonly string[];
  readonly assumedSize?: number;
}
