import {
  getNamedType,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  type GraphQLArgument,
  type GraphQLEnumType,
  type GraphQLField,
  type GraphQLInputObjectType,
  type GraphQLNamedOutputType,
  type GraphQLSchema,
  isRequiredArgument,
  isRequiredInputField,
  type GraphQLInputType,
  type ExecutionResult,
  Kind,
  parse,
  print,
  printSchema,
  specifiedScalarTypes,
  type DefinitionNode,
  type FieldDefinitionNode,
  type InputValueDefinitionNode,
  type InterfaceTypeDefinitionNode,
  type NamedTypeNode,
  type ObjectTypeDefinitionNode,
  type TypeNode,
  isSpecifiedDirective,
  isUnionType,
  validate,
} from 'graphql';
import { codedError, codeOf } from '../../errors.ts';
import type { SchemaChange } from './compare-schemas.ts';
import { answerTo, closedIntrospection, onOneLine, type Execute } from './introspect.ts';

/** A part of the snapshot that a query can use, so that the service reports its absence. */
export interface Part {
  readonly kind: 'field' | 'argument' | 'member' | 'value' | 'input';
  /** The type that has it. */
  readonly holder: string;
  /** The name of the field, the member type, the enum value or the input field. */
  readonly name: string;
  /** Of a field, if the part is an argument. */
  readonly argument?: string;
}

/** A step from one type to another: through a field, or to a member of an abstract type. */
type Step = Part & { readonly kind: 'field' | 'member' };

/** Where a query can use an input object: an argument, and the input fields inside it that lead to the object. */
interface InputPlace {
  readonly holder: string;
  readonly field: string;
  readonly argument: string;
  readonly fields: readonly { readonly holder: string; readonly name: string }[];
}

/** The parts of a snapshot that queries reach, without those that the service no longer has. */
interface SnapshotParts {
  /** Fields with their arguments, and members of abstract types; types that are nearer to the root come first. */
  readonly selectable: readonly Part[];
  /** Enum values, and fields of input objects. */
  readonly inputParts: readonly Part[];
  /** Whether queries can use the type. */
  isReached(type: string): boolean;
  /** The shortest way from the root to a type. */
  stepsTo(type: string): readonly Step[] | undefined;
  inputPlace(type: string): InputPlace | undefined;
  has(part: Part): boolean;
  field(holder: string, name: string): GraphQLField<unknown, unknown>;
  /** The arguments of a field, without those that are gone. */
  argumentsOf(holder: string, field: string): readonly GraphQLArgument[];
}

export function keyOf({ kind, holder, name, argument }: Part): string {
  return `${kind} ${holder}.${name}${argument === undefined ? '' : `.${argument}`}`;
}

/**
 * @param gone keys of parts
 * @param closed types through which nothing can be requested
 */
export function partsOf(
  snapshot: GraphQLSchema,
  gone: ReadonlySet<string>,
  closed: ReadonlySet<string> = new Set(),
): SnapshotParts {
  const isPresent = (part: Part) => !gone.has(keyOf(part));
  const ways = new Map<string, readonly Step[]>();
  const selectable: Part[] = [];
  const inputs = new Map<string, InputPlace>();
  const enums = new Map<string, GraphQLEnumType>();
  const used = new Set<string>();
  const query = snapshot.getQueryType()!;
  ways.set(query.name, []);
  const queue: GraphQLNamedOutputType[] = [query];
  for (const type of queue) {
    if (closed.has(type.name)) continue;
    const way = ways.get(type.name)!;
    const reach = (target: GraphQLNamedOutputType, step: Step) => {
      if (ways.has(target.name)) return;
      ways.set(target.name, [...way, step]);
      queue.push(target);
    };
    if (isAbstractType(type)) {
      for (const { name } of snapshot.getPossibleTypes(type)) {
        const part = { kind: 'member', holder: type.name, name } as const;
        if (!isPresent(part)) continue;
        selectable.push(part);
        reach(snapshot.getType(name) as GraphQLNamedOutputType, part);
      }
    }
    if (!isObjectType(type) && !isInterfaceType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      const part = { kind: 'field', holder: type.name, name: field.name } as const;
      if (!isPresent(part)) continue;
      selectable.push(part);
      for (const argument of argumentsOf(type.name, field.name)) {
        selectable.push({ ...part, kind: 'argument', argument: argument.name });
        const place = { holder: type.name, field: field.name, argument: argument.name, fields: [] };
        takeInput(argument, place);
      }
      const target = getNamedType(field.type);
      used.add(target.name);
      if (isEnumType(target)) enums.set(target.name, target);
      if (isCompositeType(target)) reach(target, part);
    }
  }
  return {
    selectable,
    inputParts: [...enums.values(), ...inputTypes()].flatMap(partsInside).filter(isPresent),
    isReached: (name) => ways.has(name) || used.has(name),
    stepsTo: (type) => (closed.has(type) ? undefined : ways.get(type)),
    inputPlace: (type) => inputs.get(type),
    has: isPresent,
    field: fieldOf,
    argumentsOf,
  };

  function argumentsOf(holder: string, name: string): readonly GraphQLArgument[] {
    return fieldOf(holder, name).args.filter((argument) =>
      isPresent({ kind: 'argument', holder, name, argument: argument.name }),
    );
  }

  function fieldOf(holder: string, name: string): GraphQLField<unknown, unknown> {
    const type = snapshot.getType(holder);
    if (!isObjectType(type) && !isInterfaceType(type)) throw new Error(`${holder} has no fields`);
    return type.getFields()[name]!;
  }

  function takeInput({ type }: Pick<GraphQLArgument, 'type'>, place: InputPlace): void {
    const named = getNamedType(type);
    used.add(named.name);
    if (isEnumType(named)) enums.set(named.name, named);
    if (!isInputObjectType(named) || inputs.has(named.name)) return;
    inputs.set(named.name, place);
    for (const field of Object.values(named.getFields())) {
      if (!isPresent({ kind: 'input', holder: named.name, name: field.name })) continue;
      const step = { holder: named.name, name: field.name };
      takeInput(field, { ...place, fields: [...place.fields, step] });
    }
  }

  function inputTypes(): GraphQLInputObjectType[] {
    return [...inputs.keys()].map((name) => snapshot.getType(name)).filter(isInputObjectType);
  }
}

function partsInside(type: GraphQLEnumType | GraphQLInputObjectType): Part[] {
  if (isEnumType(type)) {
    return type
      .getValues()
      .map(({ name }) => ({ kind: 'value' as const, holder: type.name, name }));
  }
  return Object.keys(type.getFields()).map((name) => ({ kind: 'input', holder: type.name, name }));
}

/**
 * A query that uses parts of the snapshot, and a field that cannot exist:
 *
 *     query (
 *       $v0: Int
 *     ) {
 *       ... @skip(if: true) {
 *         noSuchFieldToCheckTheSchema
 *         persons(
 *           first: $v0
 *         ) {
 *           ... on PersonPage {
 *
 * A service that validates refuses the query, and lists what it does not know. A service that does not validate has
 * nothing to execute. Each part is on separate lines, because services report the line of each mistake, whatever their
 * wording.
 */
interface ProbeDocument {
  readonly text: string;
  /** The part that each line uses, from line 1 at index 0. */
  readonly lines: readonly (Part | undefined)[];
  readonly impossible: Impossible;
}

interface Impossible {
  readonly name: string;
  readonly line: number;
}

interface Selections {
  readonly fields: Map<string, SelectedField>;
  readonly members: Map<string, { readonly part: Part; readonly selections: Selections }>;
}

interface SelectedField {
  readonly part: Part;
  readonly inputs: Map<string, Input>;
  readonly selections: Selections;
}

/** An argument or a field of an input object: a variable, or an object with these fields. */
interface Input {
  readonly part: Part;
  readonly type: GraphQLInputType;
  readonly inside: Map<string, Input>;
}

/** @returns undefined if no query can use these parts */
function probeDocument(
  probed: readonly Part[],
  parts: SnapshotParts,
  snapshot: GraphQLSchema,
): ProbeDocument | undefined {
  const root = emptySelections();
  const values: Part[] = [];
  let used = 0;
  for (const part of probed) if (use(part)) used += 1;
  if (used === 0) return undefined;

  const lines: (readonly [string, Part | undefined])[] = [];
  const variables: (readonly [string, Part])[] = [];
  const put = (depth: number, text: string, part?: Part) =>
    void lines.push([`${'  '.repeat(depth)}${text}`, part]);
  const impossible = impossibleField(snapshot);
  const defaults = values.map((part) => {
    const name = variable(`${part.holder} = ${part.name}`, part);
    return [`${name.slice(1)}: ${name}`, part] as const;
  });
  putSelections(root, 2);
  const selected = lines.splice(0);
  if (variables.length > 0) {
    put(0, 'query (');
    for (const [text, part] of variables) put(1, text, part);
    put(0, ') {');
  } else put(0, 'query {');
  put(1, '... @skip(if: true) {');
  const line = lines.length + 1;
  put(2, `${impossible}${defaults.length > 0 ? '(' : ''}`);
  for (const [text, part] of defaults) put(3, text, part);
  if (defaults.length > 0) put(2, ')');
  lines.push(...selected);
  put(1, '}');
  put(0, '}');
  return {
    text: lines.map(([text]) => text).join('\n'),
    lines: lines.map(([, part]) => part),
    impossible: { name: impossible, line },
  };

  function use(part: Part): boolean {
    if (part.kind === 'value') return values.push(part) > 0;
    if (part.kind === 'input') return useInput(part);
    const holder = selectionsOf(part.holder);
    if (!holder) return false;
    if (part.kind === 'member') memberOf(holder, part);
    else {
      const field = fieldOf(holder, { ...part, kind: 'field' });
      if (part.kind === 'argument') addArgument(field, part.argument!);
    }
    return true;
  }

  function useInput(part: Part): boolean {
    const place = parts.inputPlace(part.holder);
    const holder = place && selectionsOf(place.holder);
    if (!holder) return false;
    const { holder: type, field: name, argument } = place;
    const field = fieldOf(holder, { kind: 'field', holder: type, name });
    let value = addArgument(field, argument);
    for (const step of [...place.fields, part]) value = addInputField(value, step.name);
    return true;
  }

  function selectionsOf(type: string): Selections | undefined {
    return parts.stepsTo(type)?.reduce<Selections>(into, root);
  }

  function into(selections: Selections, step: Step): Selections {
    return step.kind === 'member'
      ? memberOf(selections, step)
      : fieldOf(selections, step).selections;
  }

  function memberOf({ members }: Selections, part: Part): Selections {
    const known = members.get(part.name) ?? { part, selections: emptySelections() };
    members.set(part.name, known);
    return known.selections;
  }

  function fieldOf({ fields }: Selections, { holder, name }: Part): SelectedField {
    const known = fields.get(name);
    if (known) return known;
    const part = { kind: 'field', holder, name } as const;
    const field = { part, inputs: new Map<string, Input>(), selections: emptySelections() };
    fields.set(name, field);
    for (const argument of parts.argumentsOf(holder, name)) {
      if (isRequiredArgument(argument)) addArgument(field, argument.name);
    }
    return field;
  }

  function addArgument({ part, inputs }: SelectedField, argument: string): Input {
    const known = inputs.get(argument);
    if (known) return known;
    const { type } = parts
      .field(part.holder, part.name)
      .args.find(({ name }) => name === argument)!;
    const value = {
      part: { ...part, kind: 'argument', argument } as const,
      type,
      inside: new Map(),
    };
    inputs.set(argument, value);
    return value;
  }

  function addInputField({ type, inside }: Input, name: string): Input {
    const object = getNamedType(type) as GraphQLInputObjectType;
    const add = (field: string): Input => {
      const known = inside.get(field);
      if (known) return known;
      const part = { kind: 'input', holder: object.name, name: field } as const;
      const value = { part, type: object.getFields()[field]!.type, inside: new Map() };
      inside.set(field, value);
      return value;
    };
    for (const field of Object.values(object.getFields())) {
      const isAvailable = parts.has({ kind: 'input', holder: object.name, name: field.name });
      if (isAvailable && isRequiredInputField(field)) add(field.name);
    }
    return add(name);
  }

  function putSelections({ fields, members }: Selections, depth: number): void {
    for (const { part, inputs, selections } of fields.values()) {
      const type = getNamedType(parts.field(part.holder, part.name).type);
      const opens = isCompositeType(type);
      put(depth, `${part.name}${inputs.size > 0 ? '(' : opens ? ' {' : ''}`, part);
      if (inputs.size > 0) {
        for (const [name, value] of inputs) putInput(name, value, depth + 1);
        put(depth, opens ? ') {' : ')');
      }
      if (!opens) continue;
      put(depth + 1, `... on ${type.name} {`, part);
      put(depth + 2, '__typename');
      putSelections(selections, depth + 2);
      put(depth + 1, '}');
      put(depth, '}');
    }
    for (const [name, { part, selections }] of members) {
      put(depth, `... on ${name} {`, part);
      put(depth + 1, '__typename');
      putSelections(selections, depth + 1);
      put(depth, '}');
    }
  }

  function putInput(name: string, { part, type, inside }: Input, depth: number): void {
    if (inside.size === 0) {
      // The only field of a @oneOf input must be a variable that is not nullable.
      const isOneOf = part.kind === 'input' && isOneOfInput(snapshot, part.holder);
      put(depth, `${name}: ${variable(`${String(type)}${isOneOf ? '!' : ''}`, part)}`, part);
      return;
    }
    put(depth, `${name}: {`, part);
    for (const [field, value] of inside) putInput(field, value, depth + 1);
    put(depth, '}');
  }

  function variable(definition: string, part: Part): string {
    const name = `$v${variables.length}`;
    variables.push([`${name}: ${definition}`, part]);
    return name;
  }
}

function emptySelections(): Selections {
  return { fields: new Map(), members: new Map() };
}

function isOneOfInput(snapshot: GraphQLSchema, name: string): boolean {
  const type = snapshot.getType(name);
  return isInputObjectType(type) && type.isOneOf;
}

/** A name that is not in the snapshot, and not similar to one that is: services suggest similar names. */
function impossibleField(snapshot: GraphQLSchema): string {
  let name = 'noSuchFieldToCheckTheSchema';
  while (snapshot.getQueryType()?.getFields()[name]) name += '_';
  return name;
}

/** What the errors say about a document. */
interface Refusal {
  /** Whether an error names the field that cannot exist: the service has validated the document. */
  readonly isValidated: boolean;
  /** The parts that errors name, by their keys, with the service's message. */
  readonly named: ReadonlyMap<string, { readonly part: Part; readonly words: string }>;
  /** The message of the first error that is about a limit of the service: depth, cost, size, number of errors. */
  readonly limit: string | undefined;
  /** The message of the first other error that names nothing of the document. */
  readonly unclear: string | undefined;
}

/**
 * Reads the errors with which a service refuses a document. graphql-js, graphql-java, Hot Chocolate, graphql-ruby and
 * gqlgen word them differently, so a message is searched only for the names of what the error's line uses; without
 * lines, for quoted names that only one part of the document has. Any other error is unclear.
 */
function readRefusal({ errors }: ExecutionResult, document: ProbeDocument): Refusal {
  const named = new Map<string, { part: Part; words: string }>();
  let isValidated = false;
  let limit: string | undefined;
  let unclear: string | undefined;
  for (const { text, words, lines } of (errors ?? []).map(readError)) {
    if (hasWord(text, document.impossible.name)) isValidated = true;
    // Follows from another mistake: the variables of a part that does not exist are unused.
    else if (UNUSED.test(text)) continue;
    else if (LIMIT.test(words.replace(QUOTES, ''))) limit ??= words;
    else {
      const part = partOnLines(text, lines, document) ?? quotedPart(text, document);
      if (!part) unclear ??= words;
      else if (!named.has(keyOf(part))) named.set(keyOf(part), { part, words });
    }
  }
  return { isValidated, named, limit, unclear };
}

const UNUSED = /\b(un|never |not )used\b/i;
const LIMIT = /\b(exceed\w*|limit\w*|maxim\w+|complexity|too (many|deep|large|complex|long))\b/i;
const QUOTES = /(["'`])[\w.:@$! ]*\1/g;

/** Whether an error is about a line, or has a word. */
function mentions({ errors }: ExecutionResult, line: number, word: string): boolean {
  return (errors ?? [])
    .map(readError)
    .some(({ text, lines }) => lines.includes(line) || hasWord(text, word));
}

interface ReadError {
  /** The message, and what `extensions` add to it: some messages have no names. */
  readonly text: string;
  readonly words: string;
  readonly lines: readonly number[];
}

function readError(error: unknown): ReadError {
  const { message, locations, extensions } = (error ?? {}) as Record<string, unknown>;
  const full = typeof message === 'string' ? message : '';
  // graphql-java: Validation error (FieldUndefined@[persons/items]) : Field 'x' in type 'Y' is undefined
  const words = full.replace(/^Validation error \([^)]*\) ?: /i, '');
  const lines = (Array.isArray(locations) ? locations : [])
    .map((location) => (location as { line?: unknown } | null)?.line)
    .filter((line) => typeof line === 'number');
  const withoutHints = full.replace(/\b(Did you mean|Perhaps you meant)\b.*$/is, '');
  return { text: `${withoutHints} ${JSON.stringify(extensions) ?? ''}`, words, lines };
}

/** The only part on these lines that the text names. */
function partOnLines(
  text: string,
  lines: readonly number[],
  document: ProbeDocument,
): Part | undefined {
  const parts = distinct(lines.map((line) => document.lines[line - 1]));
  const named = parts.filter((part) => wordsOf(part, document).some((word) => hasWord(text, word)));
  return named.length === 1 ? named[0] : undefined;
}

/** The names of a part, and of the types and variables on its lines. */
function wordsOf(part: Part, { text, lines }: ProbeDocument): string[] {
  const key = keyOf(part);
  const used = text.split('\n').filter((_, at) => lines[at] && keyOf(lines[at]) === key);
  const words = used.flatMap((line) => line.match(/\w+/g) ?? []);
  return [part.name, part.argument ?? part.name, ...words.filter((word) => word !== 'on')];
}

/** The part of which the text quotes more names than of any other. */
function quotedPart(text: string, { lines }: ProbeDocument): Part | undefined {
  const quotes = text.replaceAll("n't", ' not').match(QUOTES) ?? [];
  const words = new Set(quotes.flatMap((quote) => quote.match(/\w+/g) ?? []));
  const [best, next] = distinct(lines)
    .filter(({ name, argument }) => words.has(argument ?? name))
    .map((part) => ({ part, count: namesOf(part).filter((name) => words.has(name)).length }))
    .toSorted((a, b) => b.count - a.count);
  return best && best.count > (next?.count ?? 0) ? best.part : undefined;
}

function namesOf({ holder, name, argument }: Part): string[] {
  return [holder, name, ...(argument === undefined ? [] : [argument])];
}

function distinct(parts: readonly (Part | undefined)[]): Part[] {
  const known = parts.filter((part) => part !== undefined);
  return [...new Map(known.map((part) => [keyOf(part), part])).values()];
}

function hasWord(text: string, word: string): boolean {
  return new RegExp(`(?<!\\w)${word}(?!\\w)`).test(text);
}

/**
 * Removes parts from a schema, and what is not valid without them: types that are empty then, what refers to these, and
 * interfaces that a type no longer fulfils.
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

/** Removes what is invalid now. The next call removes what depended on that. */
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
      const isUsable = (argument: InputValueDefinitionNode) =>
        isKnown(argument.type) &&
        // An interface cannot have an argument that one of its types lacks.
        [node, ...typesOf(node)].every((holder) => hasArgument(holder, field, argument));
      return { ...field, arguments: field.arguments?.filter(isUsable) ?? [] };
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

function isAmong(types: readonly NamedTypeNode[] = [], type: string): boolean {
  return types.some(({ name }) => name.value === type);
}

/** A part of the snapshot that the service no longer accepts. */
interface LostPart {
  readonly part: Part;
  /** Why, in the service's words. */
  readonly words: string;
}

/** What can be learned about the live schema without introspection. */
interface SeenByValidation {
  readonly breaking: readonly SchemaChange[];
  /** The keys of the parts of the snapshot that cannot be requested any more. */
  readonly gone: ReadonlySet<string>;
  /** What was not compared, in sentences. */
  readonly unseen: readonly string[];
}

interface ValidationCheck {
  readonly snapshot: GraphQLSchema;
  readonly execute: Execute;
  readonly signal: AbortSignal;
  /** Why this is necessary, in the service's words. */
  readonly refused: string;
  readonly maxRequests: number;
}

/** The number of parts in a document. It is halved if the service refuses the document as a whole. */
const PARTS = 400;

/**
 * Finds what the service no longer accepts of the snapshot, if introspection is closed. It sends the parts of the
 * snapshot in documents with a field that cannot exist: the service refuses them, executes nothing, and lists what else
 * it does not know. The parts that it names are left out of the next documents, until nothing else is wrong. If its
 * errors name nothing, the document is halved.
 *
 * @throws coded errors: of the request, if the service does not list the mistakes of a document, or if it executes one
 */
export async function checkByValidation(check: ValidationCheck): Promise<SeenByValidation> {
  const { snapshot, maxRequests } = check;
  const lost = new Map<string, LostPart>();
  /** Keys of parts that are not sent any more. */
  const gone = new Set<string>();
  /** Types whose fields the service does not let us request, with its message. */
  const closed = new Map<string, string>();
  const notes: string[] = [];
  let requests = 0;
  let atMost = PARTS;
  let largest = 0;

  const reports = await calibrate();
  const isReported = ({ kind }: Part) =>
    kind === 'value' ? reports.values : reports.arguments || kind === 'field' || kind === 'member';
  for (const kinds of ['selectable', 'inputParts'] as const) await checkAll(kinds);
  return {
    breaking: [...lost.values()].map((part) => changeOf(part, snapshot)),
    gone,
    unseen: unseen(),
  };

  async function checkAll(kinds: 'selectable' | 'inputParts'): Promise<void> {
    const waiting: Part[][] = [present()[kinds].filter(isReported)];
    for (let group = waiting.pop(); group; group = waiting.pop()) {
      const parts = present();
      const known = new Set([...parts.selectable, ...parts.inputParts].map(keyOf));
      const left = group.filter((part) => known.has(keyOf(part)));
      if (left.length > atMost) waiting.push(left.slice(atMost));
      const probed = left.slice(0, atMost);
      const document = probeDocument(probed, parts, snapshot);
      if (!document) continue;
      // Parts may conflict in one document. If it is not valid for the snapshot, its refusal says nothing about the
      // service.
      const isFair = hasOneMistake(document, snapshot);
      if (isFair && requests >= maxRequests) {
        notes.push(
          `The check was stopped after ${requests} requests. What follows was not compared.`,
        );
        return;
      }
      const next = isFair ? await probe(document, probed) : 'halve';
      if (next === 'again') waiting.push(probed);
      // The first half is sent first: parts near the root lead to the others.
      if (next === 'halve' && probed.length > 1) {
        const half = Math.ceil(probed.length / 2);
        waiting.push(probed.slice(half), probed.slice(0, half));
      }
    }
  }

  /** @returns `again` to send the parts that are left; `halve` if the answer reports a mistake without its place */
  async function probe(
    document: ProbeDocument,
    probed: Part[],
  ): Promise<'done' | 'again' | 'halve'> {
    const answer = await send(document.text, probed.length > 1);
    const refusal = answer && readRefusal(answer, document);
    for (const { part, words } of refusal?.named.values() ?? []) lose(part, words);
    if (refusal && refusal.named.size > 0) return 'again';
    if (!refusal?.isValidated || refusal.limit !== undefined) {
      if (probed.length > largest) atMost = Math.min(atMost, Math.ceil(probed.length / 2));
      if (probed.length === 1) closed.set(probed[0]!.holder, refusal?.limit ?? messageOf(answer));
      return 'halve';
    }
    if (refusal.unclear === undefined) {
      largest = Math.max(largest, probed.length);
      return 'done';
    }
    if (probed.length === 1) lose(probed[0]!, refusal.unclear);
    return 'halve';
  }

  function lose(part: Part, words: string): void {
    gone.add(keyOf(part));
    const changed = [...lost.values()].find(
      ({ part: { kind, holder, name, argument } }) =>
        kind === 'argument' &&
        holder === part.holder &&
        name === part.name &&
        new RegExp(`\\b${argument}\\b`).test(words),
    );
    // The field lacks its argument because that was removed from the document: one change, not two.
    if (part.kind === 'field' && changed) return;
    lost.set(keyOf(part), { part, words: onOneLine(words) });
  }

  function present(): SnapshotParts {
    return partsOf(snapshot, gone, new Set(closed.keys()));
  }

  /** Sends documents with mistakes of each kind, to find out which kinds the service lists. */
  async function calibrate(): Promise<{ arguments: boolean; types: boolean; values: boolean }> {
    const name = impossibleField(snapshot);
    const fields = [
      'query {',
      '  ... @skip(if: true) {',
      `    ${name}`,
      `    __typename(${name}Argument: 1)`,
      `    ${name}Either`,
      '  }',
      '}',
    ];
    const variables = [
      'query (',
      `  $unknown: ${name}Type`,
      '  $wrong: Boolean = 3',
      ') {',
      '  ... @skip(if: true) {',
      `    ${name}(unknown: $unknown, wrong: $wrong)`,
      '  }',
      '}',
    ];
    const first = (await send(fields.join('\n'), false))!;
    if (!mentions(first, 3, name) || !mentions(first, 5, `${name}Either`)) throw unreadable(first);
    const second = (await send(variables.join('\n'), false))!;
    return {
      arguments: mentions(first, 4, `${name}Argument`),
      types: mentions(second, 2, `${name}Type`),
      values: mentions(second, 3, 'wrong') || mentions(second, 3, 'Boolean'),
    };
  }

  function unreadable(answer: ExecutionResult): Error {
    return codedError(
      'UPSTREAM_BAD_RESPONSE',
      `${closedIntrospection(check)} Nor do its errors list what is wrong with a document ` +
        `(${onOneLine(messageOf(answer))}). Ask its support to allow introspection, or maintain the snapshot by hand.`,
    );
  }

  /** @returns undefined if the service refused the document without GraphQL errors, and a smaller one can be sent */
  async function send(text: string, canBeSmaller: boolean): Promise<ExecutionResult | undefined> {
    requests += 1;
    let answer: ExecutionResult;
    try {
      answer = await answerTo(text, check.execute, check.signal);
    } catch (error) {
      if (canBeSmaller && codeOf(error) === 'UPSTREAM_BAD_RESPONSE') return undefined;
      throw error;
    }
    if (answer.data === null || answer.data === undefined) return answer;
    throw codedError(
      'UPSTREAM_BAD_RESPONSE',
      `${closedIntrospection(check)} The schema cannot be compared without it either: the service executed a document ` +
        'with a field that does not exist, instead of refusing it. Everything in the document is skipped (@skip), so ' +
        'nothing was read, and no more documents were sent. Ask its support to allow introspection, or maintain the ' +
        'snapshot by hand.',
    );
  }

  function unseen(): string[] {
    const parts = present();
    const types = Object.values(snapshot.getTypeMap()).filter(
      ({ name }) => !name.startsWith('__') && !parts.isReached(name),
    );
    const root = snapshot.getMutationType();
    const directives = snapshot.getDirectives().filter((each) => !isSpecifiedDirective(each));
    return [
      'Introspection is closed, so the service was asked with documents that it refuses. Additions cannot be seen, nor ' +
        'changes of scalar types of fields, of what may be null, and of what is a list.',
      ...(root ? ['Mutations were not checked.'] : []),
      ...(directives.length > 0
        ? [`Directives were not checked: ${shortened(directives.map(({ name }) => `@${name}`))}.`]
        : []),
      ...(reports.arguments
        ? []
        : ['Arguments were not checked: the service does not list unknown ones.']),
      ...(reports.types
        ? []
        : ['The types of arguments were not checked: the service does not list unknown ones.']),
      ...(reports.values
        ? []
        : ['Enum values were not checked: the service does not list wrong ones.']),
      ...[...closed].map(([type, words]) => `${type} was not checked: ${onOneLine(words)}`),
      ...(types.length > 0
        ? [
            `Not checked, because no query leads to it: ${shortened(types.map(({ name }) => name))}.`,
          ]
        : []),
      ...notes,
    ];
  }
}

function messageOf(answer: ExecutionResult | undefined): string {
  const message: unknown = answer?.errors?.[0]?.message;
  return typeof message === 'string' ? message : 'the service refuses this document';
}

const SHOWN = 10;

function shortened(names: readonly string[]): string {
  const more = names.length - SHOWN;
  return `${names.slice(0, SHOWN).join(', ')}${more > 0 ? `, and ${more} more` : ''}`;
}

function hasOneMistake({ text }: ProbeDocument, snapshot: GraphQLSchema): boolean {
  return validate(snapshot, parse(text)).length === 1;
}

/** How errors say that something does not exist, in the words of any server. */
const GONE =
  /\b(cannot query|undefined|unknown|not (exist|defined|accept)|no such|contains a field not in)\b/i;

/** Describes the change as a comparison does, or in the service's words unless these report that the part is gone. */
function changeOf({ part, words }: LostPart, snapshot: GraphQLSchema): SchemaChange {
  const { kind, holder, name, argument } = part;
  const path =
    kind === 'member' ? holder : [holder, name, ...(argument ? [argument] : [])].join('.');
  const text = words.replaceAll("n't", ' not');
  const isNamed = new RegExp(`(?<!\\w)${argument ?? name}(?!\\w)`).test(text);
  const isGone = kind === 'value' || kind === 'member' || (isNamed && GONE.test(text));
  return { message: isGone ? removed(part, snapshot) : `${path}: ${words}`, path };
}

function removed({ kind, holder, name, argument }: Part, snapshot: GraphQLSchema): string {
  const type = snapshot.getType(holder);
  if (kind === 'value') return `Enum value '${name}' was removed from enum '${holder}'`;
  if (kind === 'input')
    return `Input field '${name}' was removed from input object type '${holder}'`;
  if (kind === 'member') {
    return type && isUnionType(type)
      ? `Member '${name}' was removed from Union type '${holder}'`
      : `'${name}' object type no longer implements '${holder}' interface`;
  }
  if (kind === 'argument')
    return `Argument '${argument}' was removed from field '${holder}.${name}'`;
  return `Field '${name}' was removed from ${isInterfaceType(type) ? 'interface' : 'object'} type '${holder}'`;
}
