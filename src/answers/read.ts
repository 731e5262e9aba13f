import type { GraphQLError } from 'graphql';
import type { Json } from '../json.ts';
import { STEP, type Pausable } from '../pausable.ts';
import {
  brokenValue,
  callerPath,
  MAX_ERRORS,
  moreBroken,
  moreRefused,
  startsWith,
  type AnswerError,
  type Path,
  type UpstreamError,
} from './answer-errors.ts';
import { cut, NEVER, PAUSED, scanner, Tape, type Scan } from './scan.ts';
import {
  isLeaf,
  objectShape,
  TYPE_KEY,
  type AbstractShape,
  type FieldShape,
  type LeafShape,
  type ListShape,
  type ObjectShape,
  type PlaceholderShape,
  type RefusedShape,
  type Shape,
} from './shape.ts';

/** A piece of an answer: text, bytes that other answers may share, or a field that is still to be filled in. */
export type Part = string | Buffer | Placeholder;

/** A value that was read: its text, with placeholders for fields that are filled in later. */
export interface Reading {
  /** Undefined if the value must not be null, but would be: then the value around it has to be null. */
  readonly parts: readonly Part[] | undefined;
  /** Their paths begin at the value. */
  readonly errors: readonly AnswerError[];
  /** The fields that are under a `@defer`. */
  readonly deferred: readonly DeferredReading[];
}

/** Fields of an object that are sent in a later part of the answer. */
export interface DeferredReading {
  readonly label: string | undefined;
  /** From the value that was read to this object. */
  readonly path: Path;
  /** Reads the object with these fields only. The paths of the reading begin at the object. */
  readonly read: () => Pausable<Reading>;
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
 * Writes a value in the form of its shape. A value that already has this form is scanned and copied. Any other list or
 * object, for example with keys in another order, is read member by member. A value that its type does not allow
 * becomes a coded error at its path; a null that is not allowed propagates to the next nullable value. Every error of
 * the service is passed on once, whether its path leads to a null or not.
 *
 * @param errors of the service; their paths begin at the value
 * @param isExplained whether an error without a path may explain any null
 */
export function* readValue(
  shape: Shape,
  value: Json | undefined,
  errors: readonly UpstreamError[],
  isExplained = false,
): Pausable<Reading> {
  const reader = new Reader(errors, isExplained);
  const isPresent = yield* reader.read(shape, value);
  const deferred = isPresent ? reader.deferred() : [];
  return { parts: isPresent ? reader.parts() : undefined, errors: reader.errors(), deferred };
}

interface DeferredFields {
  readonly path: Path;
  readonly label: string | undefined;
  readonly shape: ObjectShape;
  readonly value: Json;
  readonly errors: readonly UpstreamError[];
}

class Reader {
  /** The parts before `#text`. */
  readonly #parts: Part[] = [];
  #text = '';
  #tape: Tape | undefined;
  /** The number of characters that were read since the last pause, roughly. */
  #progress = 0;
  readonly #errors: readonly UpstreamError[];
  readonly #broken: AnswerError[] = [];
  /** Stands for errors beyond MAX_ERRORS, which are dropped. */
  #more: UpstreamError | undefined;
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
    const passedOn = left.map((error) => ({
      ...error,
      path: error.path && callerPath(error.path),
    }));
    return [...passedOn, ...this.#broken, ...(this.#more ? [this.#more] : [])];
  }

  deferred(): readonly DeferredReading[] {
    return (
      this.#deferred?.map(({ path, label, shape, value, errors }) => ({
        path,
        label,
        read: () => readValue(shape, value, errors, this.#isExplained),
      })) ?? []
    );
  }

  /** Call it once, at the end. */
  parts(): readonly Part[] {
    this.#endText();
    return this.#parts;
  }

  /** @returns false if the value around this one has to be null */
  *read(shape: Shape, value: Json | undefined): Pausable<boolean> {
    if (isLeaf(shape)) return this.#leaf(shape, value);
    if (value === undefined || value.isNull) return this.#null(shape, value);
    if (yield* this.#scanned(shape, value)) return true;
    const [partsBefore, textBefore] = [this.#parts.length, this.#text];
    const deferredBefore = this.#deferred?.length ?? 0;
    if (yield* this.#inner(shape, value)) return true;
    this.#parts.length = partsBefore;
    this.#text = textBefore;
    if (this.#deferred) this.#deferred.length = deferredBefore;
    return this.#nullFor(shape);
  }

  /** Not a generator, which would cost more than everything else. */
  #leaf(shape: LeafShape, value: Json | undefined): boolean {
    if (value === undefined || value.isNull) return this.#null(shape, value);
    const tape = this.#cleared();
    const end = scanOf(shape)(value.bytes, value.start, tape);
    // The scanner does not accept custom scalars that are deep or long, or contain white space.
    if (end !== value.end && (shape.kind !== 'any' || shape.globalIdOf !== undefined)) {
      this.#complain('something else', named(shape));
      return this.#nullFor(shape);
    }
    this.#copy(value, tape);
    return true;
  }

  /** Copies a value that has the expected form. @returns false for any other */
  *#scanned(shape: Shape, value: Json): Pausable<boolean> {
    const scan = scanOf(shape);
    if (scan === NEVER) return false;
    const { bytes, start } = value;
    const tape = this.#cleared();
    let end = PAUSED;
    for (tape.pauseAt = start + STEP; end === PAUSED; tape.pauseAt += STEP) {
      end = scan(bytes, start, tape);
      if (end === PAUSED) yield;
    }
    if (end !== value.end) return false;
    if (tape.cuts.length === 0 || value.length <= STEP) this.#copy(value, tape);
    else {
      this.#endText();
      this.#parts.push((yield* cut(bytes, [start, end], tape, [])).bytes);
    }
    return true;
  }

  #cleared(): Tape {
    const tape = (this.#tape ??= new Tape());
    tape.reset();
    return tape;
  }

  #copy({ bytes, start, end }: Json, { cuts, inserts }: Tape): void {
    if (cuts.length === 0 && end - start > STEP) {
      this.#endText();
      this.#parts.push(Buffer.from(bytes.subarray(start, end)));
      return;
    }
    let from = start;
    for (let i = 0; i < cuts.length; i += 2) {
      this.#text += bytes.toString('utf8', from, cuts[i]) + inserts[i / 2]!;
      from = cuts[i + 1]!;
    }
    this.#text += bytes.toString('utf8', from, end);
    this.#progress += end - start;
  }

  /** @param value undefined if its key is missing */
  #null(shape: Shape, value: Json | undefined): boolean {
    if (value === undefined) this.#complain('nothing', shape.type);
    else if (!shape.nullable) this.#complain('null', shape.type);
    return this.#nullFor(shape);
  }

  #nullFor({ nullable }: Shape): boolean {
    if (nullable) this.#text += 'null';
    return nullable;
  }

  #inner(shape: ListShape | ObjectShape | AbstractShape, value: Json): Pausable<boolean> {
    switch (shape.kind) {
      case 'list':
        return this.#list(shape, value);
      case 'object':
        return this.#object(shape, value);
      case 'abstract':
        return this.#abstract(shape, value);
    }
  }

  *#list(shape: ListShape, value: Json): Pausable<boolean> {
    if (value.kind !== 'list') return this.#complain('no list', named(shape));
    if (shape.refusal) return this.#refuse(shape.refusal);
    this.#text += '[';
    let index = 0;
    for (const element of value.elements()) {
      if (index > 0) this.#text += ',';
      this.#path.push(index);
      const isPresent = isLeaf(shape.of)
        ? this.#leaf(shape.of, element)
        : yield* this.read(shape.of, element);
      this.#path.pop();
      if (!isPresent) return false;
      index += 1;
      this.#progress += EACH;
      if (this.#progress > STEP) yield* this.#pause();
    }
    this.#text += ']';
    return true;
  }

  *#pause(): Pausable<void> {
    this.#progress = 0;
    this.#endText();
    yield;
  }

  /** Turns long text into bytes: a string of many pieces takes several times the memory of its bytes. */
  #endText(): void {
    if (this.#text === '') return;
    this.#parts.push(this.#text.length < SHORT ? this.#text : Buffer.from(this.#text));
    this.#text = '';
  }

  *#abstract(shape: AbstractShape, value: Json): Pausable<boolean> {
    if (value.kind !== 'object') return this.#complain('no object', named(shape));
    const type = value.get(TYPE_KEY)?.string;
    const known = type === undefined ? undefined : shape.of(type);
    if (!known) return this.#complain('an unknown type', named(shape));
    return yield* this.#object(known, value);
  }

  *#object(shape: ObjectShape, value: Json): Pausable<boolean> {
    if (value.kind !== 'object') return this.#complain('no object', named(shape));
    if (shape.refusal) return this.#refuse(shape.refusal);
    const members = value.members(shape.sentKeys);
    let open = '{';
    let postponed: FieldShape[] | undefined;
    for (const selected of shape.fields) {
      const { key, sentKey = key, shape: field, isSilent, deferred } = selected;
      if (isSilent) continue;
      if (deferred) {
        (postponed ??= []).push(selected);
        continue;
      }
      this.#text += `${open}${JSON.stringify(key)}:`;
      open = ',';
      this.#path.push(sentKey);
      let isPresent = true;
      if (field.kind === 'refused') isPresent = this.#refused(field);
      else if (field.kind === 'placeholder') this.#placeholder(field, value);
      else if (field.kind === 'typename') isPresent = this.#typename(field, members.get(key));
      else if (isLeaf(field)) isPresent = this.#leaf(field, members.get(sentKey));
      else isPresent = yield* this.read(field, members.get(sentKey));
      this.#path.pop();
      if (!isPresent) return false;
      if (this.#progress > STEP) yield* this.#pause();
    }
    this.#text += open === '{' ? '{}' : '}';
    if (postponed) this.#defer(postponed, value);
    return true;
  }

  #defer(fields: readonly FieldShape[], value: Json): void {
    const path = [...this.#path];
    for (const [use, group] of Map.groupBy(fields, ({ deferred }) => deferred)) {
      const errors = group
        .flatMap(keysOf)
        .flatMap((key) => this.#takeErrors([...path, key], path.length));
      const shape = objectShape(
        { nullable: false, type: '' },
        group.map((field) => ({ ...field, deferred: undefined })),
      );
      (this.#deferred ??= []).push({ path, label: use?.label, shape, value, errors });
    }
  }

  /** Removes the errors at a path or below it from this reading, and returns them. */
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
      return this.#complain(
        value === undefined ? 'nothing' : value.isNull ? 'null' : 'another type',
        upstream,
      );
    this.#text += JSON.stringify(served);
    return true;
  }

  #refused({ error, nullable }: RefusedShape): boolean {
    this.#refuse(error, moreRefused);
    if (nullable) this.#text += 'null';
    return nullable;
  }

  #placeholder(shape: PlaceholderShape, parent: Json): void {
    const { idKey, pageKey } = shape;
    const path = [...this.#path];
    const at = pageKey === undefined ? undefined : [...path.slice(0, -1), pageKey];
    const errors = at ? this.#takeErrors(at, at.length) : [];
    this.#endText();
    this.#parts.push({
      shape,
      path,
      id: idKey === undefined ? undefined : parent.get(idKey),
      page: pageKey === undefined ? undefined : parent.get(pageKey),
      errors,
    });
  }

  /** Reports an invalid value, unless an error of the service explains why the value is null or missing. */
  #complain(what: string, expected: string): false {
    const path = this.#path;
    const isExplained =
      this.#isExplained || this.#errors.some((error) => error.path && startsWith(error.path, path));
    if (isExplained && (what === 'null' || what === 'nothing')) return false;
    return this.#refuse(brokenValue(what, expected));
  }

  #refuse(thrown: GraphQLError, more = moreBroken): false {
    if (this.#broken.length < MAX_ERRORS) {
      this.#broken.push({ thrown, path: [...callerPath(this.#path)] });
    } else this.#more ??= more();
    return false;
  }
}

/** Returns the scanner of a shape, created once. */
function scanOf(shape: Shape): Scan {
  const scan = scans.get(shape) ?? scanner(shape);
  scans.set(shape, scan);
  return scan;
}

const scans = new WeakMap<Shape, Scan>();

/** Shorter text stays a string, characters. */
const SHORT = 256;

/** The cost of an element in addition to its text, in characters. */
const EACH = 32;

/** The keys under which the service may report errors of a field. */
function keysOf({ key, sentKey = key, shape }: FieldShape): readonly string[] {
  return shape.kind === 'placeholder' && shape.pageKey !== undefined
    ? [key, shape.pageKey]
    : [sentKey];
}

function named({ type }: Shape): string {
  return type.endsWith('!') ? type.slice(0, -1) : type;
}
