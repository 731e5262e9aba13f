export interface Panel {
  readonly title: string;
  readonly series: readonly Series[];
}

export interface Series {
  readonly name: string;
  readonly points: readonly Point[];
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Panels side by side, both axes logarithmic, as SVG that can be read on light and on dark pages. */
export function plot(panels: readonly Panel[]): string {
  const width = panels.length * PANEL.width;
  const drawn = panels.map((panel, at) => drawPanel(panel, at * PANEL.width));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${PANEL.height}" width="${width}" height="${PANEL.height}" font-family="sans-serif" font-size="12">
<rect width="${width}" height="${PANEL.height}" fill="#fff"/>
${drawn.join('\n')}
</svg>
`;
}

const PANEL = { width: 440, height: 320 };
const AREA = { left: 64, right: 420, top: 44, bottom: 270 };
const COLOURS = ['#1b6ca8', '#c8553d', '#3f7d20', '#7b4b94'];

function drawPanel({ title, series }: Panel, left: number): string {
  const all = series.flatMap(({ points }) => points);
  const x = scale(
    all.map((point) => point.x),
    AREA.left,
    AREA.right,
  );
  const y = scale(
    all.map((point) => point.y),
    AREA.bottom,
    AREA.top,
  );
  const grid = [
    ...x.ticks.map((tick) => line(x.at(tick), AREA.top, x.at(tick), AREA.bottom)),
    ...y.ticks.map((tick) => line(AREA.left, y.at(tick), AREA.right, y.at(tick))),
  ];
  const labels = [
    ...x.ticks.map((tick) => text(x.at(tick), AREA.bottom + 18, short(tick), 'middle')),
    ...y.ticks.map((tick) => text(AREA.left - 8, y.at(tick) + 4, short(tick), 'end')),
    text((AREA.left + AREA.right) / 2, AREA.bottom + 38, 'records in the list', 'middle'),
  ];
  const lines = series.map(({ name, points }, at) => {
    const colour = COLOURS[at % COLOURS.length]!;
    const places = points.map((point) => `${round(x.at(point.x))},${round(y.at(point.y))}`);
    const dots = places.map((place) => {
      const [cx, cy] = place.split(',');
      return `<circle cx="${cx}" cy="${cy}" r="3.5" fill="${colour}"/>`;
    });
    const legend = `<g fill="${colour}">${text(AREA.left + 8 + at * 90, AREA.top - 8, name, 'start')}</g>`;
    return `<polyline points="${places.join(' ')}" fill="none" stroke="${colour}" stroke-width="2"/>${dots.join('')}${legend}`;
  });
  return `<g transform="translate(${left})" fill="#222">
${text(AREA.left, 18, title, 'start')}
${[...grid, ...labels, ...lines].join('\n')}
</g>`;
}

/** A logarithmic scale, from the power of ten below all values to the one above them. */
function scale(values: readonly number[], from: number, to: number) {
  const lowest = Math.floor(Math.log10(Math.min(...values)));
  const highest = Math.max(lowest + 1, Math.ceil(Math.log10(Math.max(...values))));
  const at = (value: number) =>
    from + ((Math.log10(value) - lowest) / (highest - lowest)) * (to - from);
  const ticks = Array.from({ length: highest - lowest + 1 }, (_, step) => 10 ** (lowest + step));
  return { at, ticks };
}

function line(x1: number, y1: number, x2: number, y2: number): string {
  return `<path d="M${round(x1)} ${round(y1)}L${round(x2)} ${round(y2)}" stroke="#ddd"/>`;
}

function text(x: number, y: number, content: string, anchor: 'start' | 'middle' | 'end'): string {
  return `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}">${content}</text>`;
}

function short(value: number): string {
  return value >= 1_000_000 ? `${value / 1_000_000} M` : value.toLocaleString('en');
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
