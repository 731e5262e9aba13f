import {
  brokenValue,
  callerPath,
  startsWith,
  type AnswerError,
  type Path,
  type UpstreamError,
} from './answer-errors.ts';
import { globalIdJson } from './global-id.ts';
import type { Json } from '../json.ts';
import {
  TYPE_KEY,
  type AbstractShape,
  type FieldShape,
  type PlaceholderShape,
  type LeafShape,
  type ListShape,
  type ObjectShape,
  type Shape,
} from './shape.ts';

/** A value that was read: its text, with placeholders where something is filled in later. */
export interface Reading {
  /** Undefined if there is a null where none is allowed, so that the value around it has to be null. */
  readonly parts: readonly (string | Placeholder)[] | undefined;
  /** Their paths begin at the value. */
  readonly errors: readonly AnswerError[];
  /** The fields that `@defer` puts off. */
  readonly deferred: readonly DeferredReading[];
}

/** Fields of an object that are sent in a later part of the answer. */
export interface DeferredReading {
  readonly label: string | undefined;
  /** From the value that was read to this object. */
  readonly path: Path;
  /** Reads the object with these fields only. The paths of the reading begin at the object. */
  readonly read: () => Reading;
}

/** Stands for a derived field of a nested list until it is filled in. */
export interface Placeholder {
  readonly shape: PlaceholderShape;
  /** From the value that was read to the field. */
  readonly path: Path;
  /** The parent's id. */
  readonly id: Json | undefined;
  /** The first page of the list, if it was inlined, and the errors in it. */
  readonly page: Json | undefined;
  readonly errors: readonly UpstreamError[];
}

/**
 * The general reading: writes a value in the form of its shape, whatever the form and the order of keys it came in. A
 * value that its type does not allow becomes a coded error at its path; a null that is not allowed propagates to the
 * next value that may be null. Every error of the service is passed on once, whether its path leads to a null or not.
 *
 * @param errors of the service; their paths begin at the value
 * @param isExplained whether an error without a path may explain any null
 */
export function readValue(
  shape: Shape,
  value: Json | undefined,
  errors: readonly UpstreamError[],
  isExplained = false,
): Reading {
  const reader = new Reader(errors, isExplained);
  const isThere = reader.read(shape, value);
  const deferred = isThere ? reader.deferred() : NOTHING_DEFERRED;
  return { parts: isThere ? reader.parts : undefined, errors: reader.errors(), deferred };
}

const NOTHING_DEFERRED: readonly DeferredReading[] = [];

interface DeferredFields {
  readonly path: Path;
  readonly label: string | undefined;
  readonly shape: ObjectShape;
  readonly value: Json;
  readonly errors: readonly UpstreamError[];
}

class Reader {
  readonly parts: (string | Placeholder)[] = [];
  readonly #errors: readonly UpstreamError[];
  readonly #found: AnswerError[] = [];
  /** Errors that belong to a placeholder or to deferred fields. */
  readonly #taken = new Set<UpstreamError>();
  readonly #path: (string | number)[] = [];

  readonly #isExplained: boolean;
  #deferred: DeferredFields[] | undefined;

  constructor(errors: readonly UpstreamError[], isExplained: boolean) {
    this.#errors = errors;
    this.#isExplained = isExplained;
  }

  errors(): AnswerError[] {
    const left = this.#errors.filter((error) => !this.#taken.has(error));
    const own = left.map((error) => ({ ...error, path: error.path && callerPath(error.path) }));
    return [...own, ...this.#found];
  }

  deferred(): readonly DeferredReading[] {
    return (
      this.#deferred?.map(({ path, label, shape, value, errors }) => ({
        path,
        label,
        read: () => readValue(shape, value, errors, this.#isExplained),
      })) ?? NOTHING_DEFERRED
    );
  }

  /** @returns false when the value around this one has to be null */
  read(shape: Shape, value: Json | undefined): boolean {
    const mark = this.parts.length;
    const deferredBefore = this.#deferred?.length ?? 0;
    if (value === undefined || value.isNull) {
      if (!shape.nullable) this.#complain('null', shape.type);
    } else if (this.#write(shape, value)) return true;
    this.parts.length = mark;
    if (this.#deferred) this.#deferred.length = deferredBefore;
    if (shape.nullable) this.parts.push('null');
    return shape.nullable;
  }

  #write(shape: Shape, value: Json): boolean {
    switch (shape.kind) {
      case 'list':
        return this.#list(shape, value);
      case 'object':
        return value.kind === 'object'
          ? this.#object(shape, value)
          : this.#complain('no object', named(shape));
      case 'abstract':
        return value.kind === 'object'
          ? this.#abstract(shape, value)
          : this.#complain('no object', named(shape));
      default: {
        const text = leafText(shape, value);
        if (text === undefined) return this.#complain('something else', named(shape));
        this.parts.push(shape.globalIdOf === undefined ? text : globalIdJson(shape, text));
        return true;
      }
    }
  }

  #list(shape: ListShape, value: Json): boolean {
    if (value.kind !== 'list') return this.#complain('no list', named(shape));
    this.parts.push('[');
    for (let i = 0; i < value.values.length; i += 1) {
      if (i > 0) this.parts.push(',');
      this.#path.push(i);
      const isThere = this.read(shape.of, value.values[i]);
      this.#path.pop();
      if (!isThere) return false;
    }
    this.parts.push(']');
    return true;
  }

  #abstract(shape: AbstractShape, value: Json): boolean {
    const type = value.get(TYPE_KEY)?.string;
    const known = type === undefined ? undefined : shape.of(type);
    return known ? this.#object(known, value) : this.#complain('an unknown type', named(shape));
  }

  #object(shape: ObjectShape, value: Json): boolean {
    let open = '{';
    let putOff: FieldShape[] | undefined;
    for (const one of shape.fields) {
      const { key, sentKey = key, shape: field, isSilent, deferred } = one;
      if (isSilent) continue;
      if (deferred) {
        (putOff ??= []).push(one);
        continue;
      }
      this.parts.push(`${open}${JSON.stringify(key)}:`);
      open = ',';
      this.#path.push(sentKey);
      let isThere = true;
      if (field.kind === 'placeholder') this.#placeholder(field, value);
      else if (field.kind === 'typename') isThere = this.#typename(field, value.get(key));
      else isThere = this.read(field, value.get(sentKey));
      this.#path.pop();
      if (!isThere) return false;
    }
    this.parts.push(open === '{' ? '{}' : '}');
    if (putOff) this.#putOff(putOff, value);
    return true;
  }

  #putOff(fields: readonly FieldShape[], value: Json): void {
    const path = [...this.#path];
    for (const [use, some] of Map.groupBy(fields, ({ deferred }) => deferred)) {
      const errors = some
        .flatMap(keysOf)
        .flatMap((key) => this.#takeErrors([...path, key], path.length));
      const shape: ObjectShape = {
        kind: 'object',
        nullable: true,
        type: '',
        fields: some.map((field) => ({ ...field, deferred: undefined })),
      };
      (this.#deferred ??= []).push({ path, label: use?.label, shape, value, errors });
    }
  }

  /** Takes the errors at a path or below it out of this reading. */
  #takeErrors(at: Path, depth: number): UpstreamError[] {
    const errors: UpstreamError[] = [];
    for (const error of this.#errors) {
      if (!error.path || !startsWith(error.path, at)) continue;
      this.#taken.add(error);
      errors.push({ ...error, path: error.path.slice(depth) });
    }
    return errors;
  }

  #typename(
    { upstream, served }: { upstream: string; served: string },
    value: Json | undefined,
  ): boolean {
    if (value?.string !== upstream)
      return this.#complain(value?.isNull === false ? 'another type' : 'null', upstream);
    this.parts.push(JSON.stringify(served));
    return true;
  }

  #placeholder(shape: PlaceholderShape, parent: Json): void {
    const { idKey, pageKey } = shape;
    const path = [...this.#path];
    const at = pageKey === undefined ? undefined : [...path.slice(0, -1), pageKey];
    const errors = at ? this.#takeErrors(at, at.length) : [];
    this.parts.push({
      shape,
      path,
      id: idKey === undefined ? undefined : parent.get(idKey),
      page: pageKey === undefined ? undefined : parent.get(pageKey),
      errors,
    });
  }

  /** Reports an invalid value, unless an error of the service explains why it is null. */
  #complain(what: string, expected: string): false {
    const path = this.#path;
    const isExplained =
      this.#isExplained || this.#errors.some((error) => error.path && startsWith(error.path, path));
    if (!isExplained || what !== 'null') {
      this.#found.push({ thrown: brokenValue(what, expected), path: [...callerPath(path)] });
    }
    return false;
  }
}

/** The keys under which the service may report errors of a field. */
function keysOf({ key, sentKey = key, shape }: FieldShape): readonly string[] {
  return shape.kind === 'placeholder' && shape.pageKey !== undefined
    ? [key, shape.pageKey]
    : [sentKey];
}

function named({ type }: Shape): string {
  return type.endsWith('!') ? type.slice(0, -1) : type;
}

/** Returns a leaf as it was written if its type allows it. A number for an ID becomes the string of its digits. */
function leafText(shape: LeafShape, value: Json): string | undefined {
  const { kind } = value;
  switch (shape.kind) {
    case 'any':
      return value.raw;
    case 'string':
      return kind === 'string' ? value.raw : undefined;
    case 'id':
      if (kind === 'string') return value.raw;
      return kind === 'number' && isWhole(value.raw) ? `"${value.raw}"` : undefined;
    case 'boolean':
      return kind === 'boolean' ? value.raw : undefined;
    case 'float':
      return kind === 'number' ? value.raw : undefined;
    case 'int': {
      const number = Number(value.raw);
      return kind === 'number' && (number | 0) === number ? value.raw : undefined;
    }
    case 'enum':
      return shape.values!.has(value.string ?? '') ? value.raw : undefined;
  }
}

/** Of any number of digits. */
function isWhole(number: string): boolean {
  return DIGITS.test(number) || Number.isInteger(Number(number));
}

const DIGITS = /^-?\d+$/;
