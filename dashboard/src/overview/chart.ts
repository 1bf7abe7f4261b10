import uPlot from 'uplot';

export interface ChartShape {
  kind: 'stack' | 'lines';
  /** One for each bucket. */
  ticks: readonly string[];
  /** The values of each layer, from the bottom of the stack to its top. */
  layers: readonly (readonly (number | null)[])[];
  /** The name of the CSS variable of each layer's color. */
  colours: readonly string[];
  format: (value: number) => string;
  wholeNumbers?: boolean | undefined;
  /** The pointer is over a bucket, and over this layer of its bar if any. */
  onLookAt: (bucket: number | null, layer: number | null) => void;
  /** The user clicked there. */
  onOpen: (bucket: number, layer: number | null) => void;
}

export type ChartData = Pick<ChartShape, 'ticks' | 'layers' | 'colours'>;

export interface Chart {
  setData(data: ChartData): void;
  /** Marks a bucket, or none. */
  lookAt(bucket: number | null): void;
  /** Draws again with the colors of the current theme. */
  repaint(): void;
  destroy(): void;
}

const heightPx = 168;
const axisFont = '11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
/** Room for one name below a bar. */
const tickPx = 52;
/** With more points than this, a line has no dots. */
const dotsMax = 31;

export function drawChart(holder: HTMLElement, shape: ChartShape): Chart {
  let data: ChartData = shape;
  let leftPx = 0;
  let marked: number | null = null;
  let isPointedAt = false;
  const band = document.createElement('div');
  band.className = 'chart-band';
  band.hidden = true;
  const bucketCount = (): number => data.ticks.length;

  const plot = new uPlot(
    {
      width: widthOf(holder),
      height: heightPx,
      padding: [8, 4, 0, 0],
      legend: { show: false },
      cursor: { y: false, x: false, points: { show: false }, drag: { x: false, y: false } },
      scales: {
        x: { time: false, range: () => [-0.5, bucketCount() - 0.5] },
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
          splits: () => data.ticks.map((_tick, bucket) => bucket),
          values: (self) => thinned(data.ticks, self.width - leftPx),
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
      series: [{}, ...seriesOf(shape)],
      hooks: {
        init: [
          (self) => {
            self.over.append(band);
            listen(self);
          },
        ],
        setCursor: [(self) => point(self)],
      },
    } as uPlot.Options,
    dataOf(shape.kind, data),
    holder,
  );

  /** Which part of a bar the pointer is over; null above it. */
  function layerAt(self: uPlot): number | null {
    const { idx = null, top = -1 } = self.cursor;
    if (shape.kind !== 'stack' || idx === null || top < 0) return null;
    const height = self.posToVal(top, 'y');
    let reached = 0;
    for (const [layer, values] of data.layers.entries()) {
      reached += values[idx] ?? 0;
      if (height <= reached && (values[idx] ?? 0) > 0) return layer;
    }
    return null;
  }

  /** It is also called when the chart is drawn again, which must not end a selection by keyboard. */
  function point(self: uPlot): void {
    const bucket = self.cursor.idx ?? null;
    if (bucket === null && !isPointedAt) return;
    isPointedAt = bucket !== null;
    shape.onLookAt(bucket, layerAt(self));
  }

  function listen(self: uPlot): void {
    let markedBefore: number | null = null;
    self.over.addEventListener('pointerdown', () => (markedBefore = marked));
    self.over.addEventListener('click', (event) => {
      const idx = self.cursor.idx ?? null;
      if (idx === null) return;
      // A finger cannot hover: the first tap shows the values, the second one opens the traces.
      const isTouch = (event as PointerEvent).pointerType === 'touch';
      if (!isTouch || markedBefore === idx) shape.onOpen(idx, layerAt(self));
    });
  }

  const sizes = new ResizeObserver(() => {
    const width = widthOf(holder);
    if (width !== plot.width) plot.setSize({ width, height: heightPx });
  });
  sizes.observe(holder);

  return {
    setData(next) {
      data = next;
      plot.setData(dataOf(shape.kind, data));
    },
    lookAt(bucket) {
      marked = bucket;
      band.hidden = bucket === null;
      band.style.width = `${100 / bucketCount()}%`;
      band.style.left = `${((bucket ?? 0) * 100) / bucketCount()}%`;
    },
    repaint: () => plot.redraw(false, true),
    destroy() {
      sizes.disconnect();
      plot.destroy();
    },
  };
}

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function seriesOf({ kind, colours, layers }: ChartShape): uPlot.Series[] {
  if (kind === 'lines') {
    const hasDots = (layers[0]?.length ?? 0) <= dotsMax;
    return colours.map((name) => ({
      stroke: () => colour(name),
      width: 2,
      points: { show: hasDots, size: 6, width: 2, fill: () => colour('--surface') },
    }));
  }
  const bars = uPlot.paths.bars?.({ size: [0.7, 44], radius: [0.06, 0] });
  // The topmost layer is drawn first, as high as the whole stack, and the others over it.
  return colours.toReversed().map((name) => ({
    fill: () => colour(name),
    width: 0,
    points: { show: false },
    ...(bars !== undefined && { paths: bars }),
  }));
}

function dataOf(kind: ChartShape['kind'], { ticks, layers }: ChartData): uPlot.AlignedData {
  const buckets = ticks.map((_tick, bucket) => bucket);
  if (kind === 'lines') return [buckets, ...layers.map((values) => [...values])];
  const heights: number[][] = [];
  for (const values of layers) {
    const below = heights.at(-1);
    heights.push(buckets.map((bucket) => (values[bucket] ?? 0) + (below?.[bucket] ?? 0)));
  }
  return [buckets, ...heights.toReversed()];
}

/** As many names as there is room for; the last one that is not cut off always. */
function thinned(ticks: readonly string[], widthPx: number): string[] {
  const bucketPx = Math.max(1, widthPx / ticks.length);
  const step = Math.ceil(tickPx / bucketPx);
  const last = ticks.length - 1 - Math.max(0, Math.ceil(tickPx / 2 / bucketPx - 0.5));
  return ticks.map((tick, bucket) => (bucket <= last && (last - bucket) % step === 0 ? tick : ''));
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
  return Array.from({ length: 12 }, (_, power) => 10 ** power).flatMap((ten) => [
    ten,
    2 * ten,
    5 * ten,
  ]);
}

function widthOf(holder: HTMLElement): number {
  return Math.max(160, Math.floor(holder.clientWidth));
}
