import { isMet } from './bench.ts';
import type { Finding, Goal } from './bench.ts';

const row = 26;
const left = 400;
const right = 150;
const scaleWidth = 420;
const top = 58;
/** Longer bars are cut here: a figure ten times better than its goal does not need a bar ten times as long. */
const headroomMax = 3;

/** Each bar shows a figure relative to its goal. The dashed line is the goal; a bar that does not reach it has missed the goal. */
export function drawChart(findings: readonly Finding[]): string {
  const bars = findings.flatMap((finding) => {
    const { goal } = finding;
    return goal === null ? [] : [{ finding, headroom: headroomOf(finding.value, goal) }];
  });
  const width = left + scaleWidth + right;
  const height = top + bars.length * row + 16;
  const x = (headroom: number): number =>
    left + (Math.min(headroom, headroomMax) / headroomMax) * scaleWidth;
  const lines = bars.map(({ finding, headroom }, i) => {
    const y = top + i * row;
    const colour = isMet(finding) === true ? '#2f855a' : '#c05621';
    return [
      text(left - 10, y + 13, `${finding.bench}: ${finding.what}`, 'end'),
      `<rect x="${left}" y="${y}" width="${(x(headroom) - left).toFixed(1)}" height="18" rx="3" fill="${colour}"/>`,
      text(x(headroom) + 8, y + 13, `${finding.value.toFixed(2)} ${finding.unit}`, 'start'),
    ].join('\n');
  });
  const goalX = x(1).toFixed(1);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif" font-size="13">`,
    '<title>Every measured figure and its goal</title>',
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    text(left, 22, 'Measured figures and their goals', 'start', 'font-size="16" font-weight="600"'),
    text(x(1), 44, 'goal', 'middle'),
    ...lines,
    `<line x1="${goalX}" x2="${goalX}" y1="50" y2="${height - 12}" stroke="#1a202c" stroke-width="1.5" stroke-dasharray="4 3"/>`,
    '</svg>\n',
  ].join('\n');
}

/** 1 at the goal and more if the figure is better, for upper and lower goals. */
function headroomOf(value: number, goal: Goal): number {
  return 'atLeast' in goal ? value / goal.atLeast : goal.atMost / value;
}

function text(x: number, y: number, content: string, anchor: string, more = ''): string {
  const safe = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${x.toFixed(1)}" y="${y}" text-anchor="${anchor}" fill="#1a202c" ${more}>${safe}</text>`;
}
