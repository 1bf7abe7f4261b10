import uPlot from 'uplot';

export interface ChartShape {
  kind: 'bars' | 'line';
  labels: readonly string[];
  values: readonly (number | null)[];
  /** The errors in each bar, drawn at its top in the error color. */
  bad?: readonly number[] | undefined;
  format: (value: number) => string;
  wholeNumbers?: boolean | undefined;
  onLookAt: (day: number | null) => void;
}

export interface Chart {
  setData(data: Pick<ChartShape, 'labels' | 'values' | 'bad'>): void;
  /** Marks a day, or none. */
  lookAt(day: number | null): void;
  /** Draws again with the colors of the current theme. */
  repaint(): void;
  destroy(): void;
}

const heightPx = 168;
const axisFont = '11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

export function drawChart(holder: HTMLElement, shape: ChartShape): Chart {
  let { labels } = shape;
  let leftPx = 0;
  const colour = (name: string): string =>
    getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const band = document.createElement('div');
  band.className = 'chart-band';
  band.hidden = true;

  const plot = new uPlot(
    {
      width: widthOf(holder),
      height: heightPx,
      padding: [8, 4, 0, 0],
      legend: { show: false },
      cursor: { y: false, x: false, points: { show: false }, drag: { x: false, y: false } },
      scales: {
        x: { time: false, range: () => [-0.5, labels.length - 0.5] },
        y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.08 : 1] },
      },
      axes: [
        {
          stroke: () => colour('--text-muted'),
          font: axisFont,
          size: 24,
          gap: 6,
          grid: { show: false },
          ticks: { show: false },
          splits: () => labels.map((_label, day) => day),
          values: (self) => thinned(labels, self.width - leftPx),
        },
        {
          stroke: () => colour('--text-muted'),
          font: axisFont,
          size: (self, values) => (leftPx = axisWidth(self, values)),
          gap: 8,
          space: 36,
          incrs: shape.wholeNumbers === true ? wholeIncrements() : undefined,
          grid: { stroke: () => colour('--grid'), width: 1 },
          ticks: { show: false },
          values: (_plot, splits) => splits.map((value) => shape.format(value)),
        },
      ],
      series: [{}, ...seriesOf(shape, colour)],
      hooks: {
        init: [(self) => self.over.append(band)],
        setCursor: [(self) => shape.onLookAt(self.cursor.idx ?? null)],
      },
    } as uPlot.Options,
    dataOf(shape),
    holder,
  );

  const sizes = new ResizeObserver(() => {
    const width = widthOf(holder);
    if (width !== plot.width) plot.setSize({ width, height: heightPx });
  });
  sizes.observe(holder);

  return {
    setData(data) {
      labels = data.labels;
      plot.setData(dataOf({ ...shape, ...data }));
    },
    lookAt(day) {
      band.hidden = day === null;
      band.style.width = `${100 / labels.length}%`;
      band.style.left = `${((day ?? 0) * 100) / labels.length}%`;
    },
    repaint: () => plot.redraw(false, true),
    destroy() {
      sizes.disconnect();
      plot.destroy();
    },
  };
}

function seriesOf({ kind, bad }: ChartShape, colour: (name: string) => string): uPlot.Series[] {
  if (kind === 'line') {
    return [
      {
        stroke: () => colour('--chart'),
        width: 2,
        points: { show: true, size: 7, width: 2, fill: () => colour('--surface') },
      },
    ];
  }
  const bars = uPlot.paths.bars?.({ size: [0.62, 44], radius: [0.06, 0] });
  const bar = (name: string): uPlot.Series => ({
    fill: () => colour(name),
    width: 0,
    points: { show: false },
    ...(bars !== undefined && { paths: bars }),
  });
  // The whole bar is drawn in the error color, and the part without errors over it.
  return bad === undefined ? [bar('--chart')] : [bar('--chart-bad'), bar('--chart')];
}

function dataOf({ values, bad }: Pick<ChartShape, 'values' | 'bad'>): uPlot.AlignedData {
  const days = values.map((_value, day) => day);
  if (bad === undefined) return [days, [...values]];
  return [days, [...values], values.map((value, day) => (value ?? 0) - (bad[day] ?? 0))];
}

/** Every day's name if there is room, otherwise every other one; today's always. */
function thinned(labels: readonly string[], widthPx: number): string[] {
  const step = widthPx < labels.length * 44 ? 2 : 1;
  return labels.map((label, day) => ((labels.length - 1 - day) % step === 0 ? label : ''));
}

/** As wide as its longest number. */
function axisWidth(plot: uPlot, values: readonly string[] | null): number {
  const longest = (values ?? []).reduce((a, b) => (b.length > a.length ? b : a), '');
  if (longest === '') return 24;
  plot.ctx.save();
  plot.ctx.font = axisFont;
  const widthPx = plot.ctx.measureText(longest).width;
  plot.ctx.restore();
  return Math.ceil(widthPx) + 12;
}

function wholeIncrements(): number[] {
  return Array.from({ length: 10 }, (_, power) => 10 ** power).flatMap((ten) => [
    ten,
    2 * ten,
    5 * ten,
  ]);
}

function widthOf(holder: HTMLElement): number {
  return Math.max(160, Math.floor(holder.clientWidth));
}
