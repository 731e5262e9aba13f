import { hash } from 'node:crypto';

export interface Person {
  id: string;
  firstName: string;
}

/** The made-up person with this number, the same every time. */
export function personOf(number: number): Person {
  return { id: idOf(number), firstName: firstNameOf(number) };
}

/** Looks like a random UUID. */
function idOf(number: number): string {
  const bits = hash('sha256', String(number));
  return bits.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*/, '$1-$2-4$3-a$4-$5');
}

/** All names are used before one is repeated. */
function firstNameOf(number: number): string {
  const turn = Math.floor(number / names.length);
  return names[(number * stride + turn * 31) % names.length]!;
}

const names = [
  'Emma, Noah, Olivia, Liam, Grace, Samuel, Hannah, Marcus, Ingrid, Tomasz, Giulia, Mateo, Aaliyah',
  'Zoë, Renée, Jürgen, Åsa, Søren, Łukasz, Žofie, Đurđa, Ștefan, İbrahim, Çağla, Iñaki, João',
  'Nguyệt, Đức, Thủy, Hương, Quỳnh, Trường, Phượng, Bảo Ngọc, Minh Tuấn',
  "D'Angelo, N'Golo, M'Baye, Kaʻiulani, Keʻala, Ra'anan, O’Neil, Āwhina, Ma’afu, Ana Lucía",
  'Anne-Marie, Jean-Luc, Karl-Heinz, Marie-Thérèse, Ji-woo, Abd-al-Aziz, Mary Ann, José María',
  // Letters with combining accents: they look like the composed ones above, and differ in memory.
  'Zoe\u0308, Andre\u0301s, A\u030asa, Bjo\u0308rn, Lu\u0301cia, Franc\u0327oise, Ma\u0300iri',
  'Анна, Сергей, Екатерина, Пётр, Алёна, Йордан, Љиљана, Ђорђе, Оксана, Мар’яна, Євген, Ілля',
  'Ελένη, Γιώργος, Αγγελική, Δημήτρης, Χριστίνα, Θεόδωρος, Ιωάννα, Ξένια, Ζωή, Αϊσέ',
  'محمد, فاطمة, عائشة, يوسف, مريم, خالد, ليلى, إبراهيم, عبد الرحمن, شیرین, پریسا, علی\u200cرضا',
  "נועה, אברהם, שרה, תמר, איתן, רחל, ג'ורג', מָרִים",
  'अनन्या, राहुल, प्रिया, विक्रम, श्रेया, अर्जुन, लक्ष्मी, कृष्ण, दीपिका',
  '伟, 秀英, 子涵, 梓萱, 建国, 雅婷, 俊傑, 淑芬, 堃, 𬀩',
  'さくら, 陽菜, 翔太, 健一, 結衣, ハナ, 大輔, 美咲, 蓮, りょうま',
  '민준, 서연, 지우, 하은, 도윤, 예린, 현우, 수아',
].flatMap((line) => line.split(', '));

// It has no common divisor with the number of names, so it visits each of them, neighbours far apart.
const stride = 89;
