import {
  getOperationAST,
  getVariableValues,
  NoSchemaIntrospectionCustomRule,
  validate,
  type DocumentNode,
  type GraphQLSchema,
  type ValidationRule,
} from 'graphql';
import { isAsyncIterable, type Plugin, type YogaInitialContext } from 'graphql-yoga';
import { codedError } from '../errors.ts';
import { findRouterFields } from './auth/router-fields.ts';

/**
 * Where introspection is off, nothing else tells the schema either: not the SDL for routers, unless a router asks
 * for it, and no "Did you mean …?" of a message.
 */
export function introspection(
  enabled: boolean,
  isRouter: (request: Request) => boolean = () => false,
): Plugin<YogaInitialContext> {
  return {
    onValidate: ({ context, params, addValidationRule, setValidationFn }) => {
      setValidationFn((schema: GraphQLSchema, document: DocumentNode, rules: ValidationRule[]) =>
        validate(schema, document, rules, { hideSuggestions: !enabled }),
      );
      if (enabled) return;
      addValidationRule(NoSchemaIntrospectionCustomRule);
      const document = params.documentAST as DocumentNode;
      const operation = getOperationAST(document, context.params.operationName);
      if (!operation || isRouter(context.request)) return;
      const fields = findRouterFields(params.schema as GraphQLSchema, document, operation);
      if (fields.includes('_service')) throw closed();
    },
    onExecute: ({ args: { schema, document, operationName, variableValues } }) => {
      if (enabled) return undefined;
      return {
        // The executor has an option for this, and passes it by when it coerces variables.
        onExecuteDone: ({ result, setResult }) => {
          if (isAsyncIterable(result) || !result.errors || result.data !== undefined) return;
          const { variableDefinitions = [] } = getOperationAST(document, operationName) ?? {};
          const { errors } = getVariableValues(schema, variableDefinitions, variableValues ?? {}, {
            maxErrors: 50,
            hideSuggestions: true,
          });
          if (errors) setResult({ errors });
        },
      };
    },
  };
}

function closed() {
  return codedError(
    'FORBIDDEN',
    'The SDL of this subgraph is not given out: introspection is off, and this credential is not that of a router. The operator of this gateway has it from "schema print --subgraph".',
    { extensions: { http: { status: 403, spec: true } } },
  );
}
