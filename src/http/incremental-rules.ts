import {
  getNullableType,
  GraphQLError,
  isListType,
  Kind,
  type ASTVisitor,
  type DirectiveNode,
  type ValidationContext,
} from 'graphql';

/** What the proposal demands of `@defer` and `@stream`, beyond what holds for every directive. */
export function incrementalRules(context: ValidationContext): ASTVisitor {
  const labels = new Map<string, DirectiveNode>();
  return {
    Directive: (node) => {
      const { value: name } = node.name;
      if (name !== 'defer' && name !== 'stream') return;
      const report = (message: string, ...others: DirectiveNode[]) =>
        context.reportError(new GraphQLError(message, { nodes: [node, ...others] }));
      if (name === 'stream') {
        const field = context.getFieldDef();
        if (field && !isListType(getNullableType(field.type))) {
          report(`@stream is for lists, and ${field.name} is none.`);
        }
      }
      const label = node.arguments?.find((argument) => argument.name.value === 'label')?.value;
      if (label === undefined || label.kind === Kind.NULL) return;
      if (label.kind !== Kind.STRING) {
        return report(`The label of @${name} must be written out, not given by a variable.`);
      }
      const other = labels.get(label.value);
      if (other) report(`The label "${label.value}" is used twice; each must be unique.`, other);
      labels.set(label.value, node);
    },
  };
}
