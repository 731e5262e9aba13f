/**
 * Persons in the order of their sort keys. A record is only a number here: its id, name and first sort key are derived
 * from the number when they are read, so that a million records are cheap.
 */
export class PersonList {
  readonly #initial: number;
  readonly #keys: SortKeys;
  /** Only of records that were inserted or moved. */
  readonly #changedKeys = new Map<number, string>();
  #records: number[];
  #nextRecord: number;

  constructor(count: number) {
    if (!Number.isSafeInteger(count) || count < 0) {
      throw new RangeError(`The number of persons must be a whole number from 0, not ${count}.`);
    }
    this.#initial = count;
    this.#keys = new SortKeys(count);
    this.#records = numbersFrom(0, count);
    this.#nextRecord = count;
  }

  get length(): number {
    return this.#records.length;
  }

  all(): Person[] {
    return this.slice(0, this.length);
  }

  slice(start: number, end: number): Person[] {
    return this.#records.slice(start, end).map(personOf);
  }

  /** Inserts new persons before the one at this position; at `length`, after the last one. */
  insert(at: number, count = 1): void {
    this.#mustBeWithin(at, this.length);
    this.#mustBeWithin(count, Number.MAX_SAFE_INTEGER);
    const keys = this.#keysAt(at, count);
    const added = numbersFrom(this.#nextRecord, count);
    this.#nextRecord += count;
    added.forEach((record, index) => this.#changedKeys.set(record, keys[index] ?? ''));
    this.#records = [...this.#records.slice(0, at), ...added, ...this.#records.slice(at)];
  }

  remove(at: number, count = 1): void {
    this.#mustBeWithin(at + count, this.length);
    this.#mustBeWithin(at, at + count);
    for (const record of this.#records.splice(at, count)) this.#changedKeys.delete(record);
  }

  /** Moves the person at `from`; its position afterwards is `to`. */
  move(from: number, to: number): void {
    this.#mustBeWithin(from, this.length - 1);
    this.#mustBeWithin(to, this.length - 1);
    const record = this.recordAt(from);
    this.#records.splice(from, 1);
    this.#changedKeys.set(record, this.#keysAt(to, 1)[0] ?? '');
    this.#records.splice(to, 0, record);
  }

  recordAt(position: number): number {
    const record = this.#records[position];
    if (record === undefined) throw new RangeError(`There is no person at ${position}.`);
    return record;
  }

  keyAt(position: number): string {
    return this.#keyOf(this.recordAt(position));
  }

  /** The position of the first person with a larger key. */
  positionAfterKey(key: string): number {
    return this.#firstPosition((other) => other > key);
  }

  /** The record's current position; undefined once it was removed. */
  positionOf(record: number): number | undefined {
    const key = this.#keyOf(record);
    const position = this.#firstPosition((other) => other >= key);
    return this.#records[position] === record ? position : undefined;
  }

  #keyOf(record: number): string {
    return (
      this.#changedKeys.get(record) ?? (record < this.#initial ? this.#keys.first(record) : '')
    );
  }

  #keysAt(position: number, count: number): string[] {
    if (position === this.length) return this.#keys.last(count);
    if (position === 0) return this.#keys.front(count);
    return this.#keys.between(this.keyAt(position - 1), this.keyAt(position), count);
  }

  /** Searches by halves: the list is in the order of its keys. */
  #firstPosition(holds: (key: string) => boolean): number {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (holds(this.keyAt(middle))) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #mustBeWithin(position: number, last: number): void {
    if (!Number.isSafeInteger(position) || position < 0 || position > last) {
      throw new RangeError(`${position} is not within 0 and ${last}.`);
    }
  }
}

function numbersFrom(start: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => start + index);
}

/**
 * Sort keys: numbers with so many digits that there is another one between any two, as texts in the order of `<`. Each is
 * issued once, so that the key of a removed record never becomes that of another one.
 */
class SortKeys {
  #lowest = ORIGIN;
  #highest: bigint;
  #issued = 0n;

  /** Reserves the keys `first(0)` to `first(count - 1)`. */
  constructor(count: number) {
    this.#highest = ORIGIN + BigInt(count);
  }

  first(index: number): string {
    return textOf((ORIGIN + BigInt(index)) * GAP);
  }

  /** Keys smaller than all others, in order. */
  front(count: number): string[] {
    this.#lowest -= BigInt(count);
    return numbersFrom(0, count).map((index) => textOf((this.#lowest + BigInt(index)) * GAP));
  }

  /** Keys larger than all others, in order. */
  last(count: number): string[] {
    const first = this.#highest;
    this.#highest += BigInt(count);
    return numbersFrom(0, count).map((index) => textOf((first + BigInt(index)) * GAP));
  }

  /** Keys between two others, in order. */
  between(low: string, high: string, count: number): string[] {
    const start = BigInt(`0x${low}`);
    const step = (BigInt(`0x${high}`) - start) / BigInt(count + 1);
    if (step < ORIGIN) throw new RangeError('Too many persons were inserted at one place.');
    return numbersFrom(1, count).map((index) => {
      this.#issued += 1n;
      return textOf(start + step * BigInt(index) + this.#issued);
    });
  }
}

const ORIGIN = 1n << 40n;
/** The distance of two keys that the list begins with. */
const GAP = 1n << 200n;

function textOf(key: bigint): string {
  return key.toString(16).padStart(61, '0');
}

export interface Person {
  id: string;
  firstName: string;
}

/** The made-up person with this number, the same every time. */
export function personOf(number: number): Person {
  return { id: idOf(number), firstName: firstNameOf(number) };
}

/** Looks like a random UUID. The first 32 bits are a permutation of the number, so that no two ids are equal. */
export function idOf(number: number): string {
  const [a, b, c, d] = [word(number, 1), word(number, 2), word(number, 3), word(number, 4)];
  return `${a}-${b.slice(0, 4)}-4${b.slice(5)}-a${c.slice(5)}-${c.slice(0, 4)}${d}`;
}

function word(number: number, round: number): string {
  return scramble(number + round * 0x3c6e_f35f)
    .toString(16)
    .padStart(8, '0');
}

/** Each step can be reversed, so different numbers stay different. */
function scramble(number: number): number {
  let bits = number | 0;
  bits = Math.imul(bits ^ (bits >>> 15), 0x2f8d_4c35);
  bits = Math.imul(bits ^ (bits >>> 13), 0x61b9_e2a7);
  return (bits ^ (bits >>> 16)) >>> 0;
}

/** All names are used before one is repeated. */
function firstNameOf(number: number): string {
  const turn = Math.floor(number / names.length);
  return names[(number * stride + turn * 31) % names.length] ?? '';
}

const names = [
  'Emma, Noah, Olivia, Liam, Grace, Samuel, Hannah, Marcus, Ingrid, Tomasz, Giulia, Mateo, Aaliyah',
  'Zoë, Renée, Jürgen, Åsa, Søren, Łukasz, Žofie, Đurđa, Ștefan, İbrahim, Çağla, Iñaki, João',
  'François, Anaïs, Éloïse, Björn, Þórdís, Sæunn, Siobhán, Gráinne, Małgorzata, Błażej, Jiří',
  'Šárka, Ľubomír, Győző, Zsófia, Jānis, Ģirts, Žydrūnė, Õnne, Väinö, Conceição, Sæmund, Ġorġ',
  'Adéwálé, Ọlábísí, Kẹ́hìndé, Ṣadé, Táíwò, Sıla, Gülşah, Fañch, Ċensu, Ñusta, Ülkü, Aloÿs',
  'Nguyệt, Đức, Thủy, Hương, Quỳnh, Trường, Phượng, Bảo Ngọc, Minh Tuấn',
  "D'Angelo, N'Golo, M'Baye, Kaʻiulani, Keʻala, Ra'anan, O’Neil, Āwhina, Ma’afu, Ana Lucía",
  'Anne-Marie, Jean-Luc, Karl-Heinz, Marie-Thérèse, Ji-woo, Abd-al-Aziz, Mary Ann, José María',
  // Letters with combining accents: they look like the composed ones above, and differ in memory.
  'Zoe\u0308, Andre\u0301s, A\u030asa, Bjo\u0308rn, Lu\u0301cia, Franc\u0327oise, Ma\u0300iri',
  'Анна, Сергей, Екатерина, Пётр, Алёна, Йордан, Љиљана, Ђорђе, Оксана, Мар’яна, Євген, Ілля',
  'Їванна, Тарас, Айгүл, Нұрлан, Өлзий, Цветелина, Алесь, Ўладзімір',
  'Ελένη, Γιώργος, Αγγελική, Δημήτρης, Χριστίνα, Θεόδωρος, Ιωάννα, Ξένια, Ζωή, Αϊσέ',
  'محمد, فاطمة, عائشة, يوسف, مريم, خالد, ليلى, إبراهيم, عبد الرحمن, شیرین, پریسا, علی\u200cرضا',
  "נועה, אברהם, שרה, תמר, איתן, רחל, ג'ורג', מָרִים",
  'अनन्या, राहुल, प्रिया, विक्रम, श्रेया, अर्जुन, लक्ष्मी, कृष्ण, दीपिका',
  'অনির্বাণ, সুচিত্রা, கவிதா, முருகன், రాజేశ్వరి, ಮಂಜುನಾಥ್, സുജാത, ਹਰਪ੍ਰੀਤ, ජයන්ත',
  'สมชาย, กนกวรรณ, ស្រីមុំ, အောင်, བསྟན་འཛིན, გიორგი, ნინო, Արամ, Անահիտ, ሰላም, አበበ, ᏎᏉᏯ',
  '伟, 秀英, 子涵, 梓萱, 建国, 雅婷, 俊傑, 淑芬, 堃, 𬀩',
  'さくら, 陽菜, 翔太, 健一, 結衣, ハナ, 大輔, 美咲, 蓮, りょうま',
  '민준, 서연, 지우, 하은, 도윤, 예린, 현우, 수아',
].flatMap((line) => line.split(', '));

// It has no common divisor with the number of names, so it visits each of them, neighbours far apart.
const stride = 89;
