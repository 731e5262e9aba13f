import {
  Kind,
  parse,
  print,
  printSchema,
  specifiedScalarTypes,
  type DefinitionNode,
  type FieldDefinitionNode,
  type GraphQLSchema,
  type InputValueDefinitionNode,
  type InterfaceTypeDefinitionNode,
  type NamedTypeNode,
  type ObjectTypeDefinitionNode,
  type TypeNode,
} from 'graphql';
import { impossibleField } from './probe-document.ts';
import { keyOf, type Part } from './snapshot-parts.ts';

/**
 * Removes parts from a schema, and what is not valid without them: types that have nothing left, what refers to these,
 * and interfaces that a type no longer fulfils.
 *
 * @param gone keys of parts
 * @returns SDL
 */
export function withoutParts(snapshot: GraphQLSchema, gone: ReadonlySet<string>): string {
  // A schema has at least one query.
  const query = snapshot.getQueryType()!.name;
  const rest = parse(`type ${query} { ${impossibleField(snapshot)}: Int }`).definitions;
  let definitions: readonly DefinitionNode[] = parse(printSchema(snapshot)).definitions;
  let sdl = '';
  for (;;) {
    const before = sdl;
    definitions = withoutOnce(definitions, gone);
    if (!definitions.some((each) => isHolder(each) && each.name.value === query)) {
      definitions = [...definitions, ...rest];
    }
    sdl = `${definitions.map(print).join('\n\n')}\n`;
    if (sdl === before) return sdl;
  }
}

type Holder = ObjectTypeDefinitionNode | InterfaceTypeDefinitionNode;

/** Removes what the first look finds: whatever depended on it is found by the next one. */
function withoutOnce(
  definitions: readonly DefinitionNode[],
  gone: ReadonlySet<string>,
): DefinitionNode[] {
  const known = new Set(specifiedScalarTypes.map(({ name }) => name));
  const holders: Holder[] = [];
  for (const each of definitions) {
    if ('name' in each && each.name) known.add(each.name.value);
    if (isHolder(each)) holders.push(each);
  }
  const interfaces = new Map(holders.map((holder) => [holder.name.value, holder]));
  return definitions.flatMap(without);

  function without(node: DefinitionNode): DefinitionNode[] {
    switch (node.kind) {
      case Kind.OBJECT_TYPE_DEFINITION:
      case Kind.INTERFACE_TYPE_DEFINITION: {
        const fields = fieldsOf(node);
        const left = { ...node, fields };
        return fields.length > 0
          ? [{ ...left, interfaces: node.interfaces?.filter((each) => fulfils(left, each)) ?? [] }]
          : [];
      }
      case Kind.INPUT_OBJECT_TYPE_DEFINITION: {
        const fields = node.fields?.filter(
          (field) => isKnown(field.type) && has('input', node, field),
        );
        return fields?.length ? [{ ...node, fields }] : [];
      }
      case Kind.ENUM_TYPE_DEFINITION: {
        const values = node.values?.filter((value) => has('value', node, value));
        return values?.length ? [{ ...node, values }] : [];
      }
      case Kind.UNION_TYPE_DEFINITION: {
        const types = node.types?.filter((type) => isKnown(type) && has('member', node, type));
        return types?.length ? [{ ...node, types }] : [];
      }
      case Kind.SCHEMA_DEFINITION: {
        const operationTypes = node.operationTypes.filter(({ type }) => isKnown(type));
        return [{ ...node, operationTypes }];
      }
      case Kind.DIRECTIVE_DEFINITION:
        return [{ ...node, arguments: node.arguments?.filter(({ type }) => isKnown(type)) ?? [] }];
      default:
        return [node];
    }
  }

  function fieldsOf(node: Holder): FieldDefinitionNode[] {
    const left = node.fields?.filter((field) => isKnown(field.type) && has('field', node, field));
    return (left ?? []).map((field) => {
      const isGiven = (argument: InputValueDefinitionNode) =>
        isKnown(argument.type) &&
        // An interface cannot have an argument that one of its types lacks.
        [node, ...typesOf(node)].every((holder) => hasArgument(holder, field, argument));
      return { ...field, arguments: field.arguments?.filter(isGiven) ?? [] };
    });
  }

  function typesOf({ kind, name }: Holder): Holder[] {
    if (kind !== Kind.INTERFACE_TYPE_DEFINITION) return [];
    return holders.filter((holder) => isAmong(holder.interfaces, name.value));
  }

  function fulfils(node: Holder, { name }: NamedTypeNode): boolean {
    const target = interfaces.get(name.value);
    if (!target || !has('member', target, node)) return false;
    const names = new Set(node.fields?.map((field) => field.name.value));
    return (
      fieldsOf(target).every((field) => names.has(field.name.value)) &&
      (target.interfaces ?? []).every((each) => isAmong(node.interfaces, each.name.value))
    );
  }

  function has(kind: Part['kind'], holder: Named, { name }: Named): boolean {
    return !gone.has(keyOf({ kind, holder: holder.name.value, name: name.value }));
  }

  function hasArgument(holder: Named, { name }: Named, argument: Named): boolean {
    const part = { kind: 'argument', holder: holder.name.value, name: name.value } as const;
    return !gone.has(keyOf({ ...part, argument: argument.name.value }));
  }

  function isKnown(type: TypeNode): boolean {
    return type.kind === Kind.NAMED_TYPE ? known.has(type.name.value) : isKnown(type.type);
  }
}

interface Named {
  readonly name: { readonly value: string };
}

function isHolder(node: DefinitionNode): node is Holder {
  return node.kind === Kind.OBJECT_TYPE_DEFINITION || node.kind === Kind.INTERFACE_TYPE_DEFINITION;
}

function isAmong(types: readonly NamedTypeNode[] = [], wanted: string): boolean {
  return types.some(({ name }) => name.value === wanted);
}
