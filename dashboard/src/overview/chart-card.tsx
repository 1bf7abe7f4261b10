import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Skeleton } from '../parts/skeleton.tsx';
import { useStore } from '../parts/store.ts';
import { theme } from '../shell/theme.ts';
import type { Chart, ChartShape } from './chart.ts';
import { loadCharts } from './chart-loader.ts';

/** A line of the legend, which is also the readout: its value is that of the selected bucket, or of the whole range. */
export interface LegendLine {
  key: string;
  name: ComponentChildren;
  colour: string;
  /** Formatted. */
  value: ComponentChildren;
}

export interface ChartCardProps {
  name: string;
  kind: ChartShape['kind'];
  format: ChartShape['format'];
  wholeNumbers?: boolean;
  /** Null while loading. */
  buckets: readonly { label: string; tick: string }[] | null;
  layers: ChartShape['layers'];
  legend: readonly LegendLine[];
  lookedAt: number | null;
  /** The layer under the pointer, if it is in this chart. */
  layer: number | null;
  onLookAt: ChartShape['onLookAt'];
  onOpen: ChartShape['onOpen'];
  /** What the value refers to: a bucket, or the range. */
  valueLabel: string;
  value: ComponentChildren;
  /** What a screen reader says about a bucket. */
  words: (bucket: number) => string;
}

/** A chart with its readout. Arrow keys go from bucket to bucket, Enter opens the traces. */
export function ChartCard(props: ChartCardProps) {
  const { name, buckets, legend, layer, valueLabel, value } = props;
  return (
    <div class="card chart-card">
      <div class="chart-heading">
        <h3>{name}</h3>
        <p class="chart-value">
          {buckets !== null && (
            <>
              <span class="muted">{valueLabel}</span> {value}
            </>
          )}
        </p>
      </div>
      <Plot {...props} />
      <ul class="legend" aria-label={`${name}: legend`}>
        {legend.map((line, index) => (
          <li key={line.key} class={index === layer ? 'legend-line looked-at' : 'legend-line'}>
            <span class={`swatch ${line.colour}`} aria-hidden="true" />
            <span class="legend-name">{line.name}</span>
            <span class="legend-value">{line.value}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function Plot(props: ChartCardProps) {
  const { name, buckets, layers, legend, lookedAt } = props;
  const holder = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart | null>(null);
  const [stage, setStage] = useState<'waiting' | 'drawn' | 'broken'>('waiting');
  const currentTheme = useStore(theme);
  const handlers = useRef(props);
  handlers.current = props;
  const isReady = buckets !== null;
  const data = {
    ticks: buckets?.map(({ tick }) => tick) ?? [],
    layers,
    colours: legend.map(({ colour }) => `--${colour}`),
  };
  // Another number of layers or buckets is another chart; the same layers may get new numbers.
  const shape = `${isReady} ${layers.length} ${data.ticks.length}`;

  useEffect(() => {
    const element = holder.current;
    if (!isReady || element === null) return undefined;
    let isGone = false;
    loadCharts()
      .then(({ drawChart }) => {
        if (isGone) return;
        const { kind, format, wholeNumbers } = props;
        chart.current = drawChart(element, {
          ...data,
          kind,
          format,
          wholeNumbers,
          onLookAt: (bucket, at) => handlers.current.onLookAt(bucket, at),
          onOpen: (bucket, at) => handlers.current.onOpen(bucket, at),
        });
        setStage('drawn');
      })
      .catch(() => setStage('broken'));
    return () => {
      isGone = true;
      chart.current?.destroy();
      chart.current = null;
    };
  }, [shape]);

  // Also after the first drawing: the numbers may have changed while the chart code was loading.
  useEffect(() => {
    if (isReady) chart.current?.setData(data);
  }, [stage, JSON.stringify(data)]);
  useEffect(() => chart.current?.repaint(), [currentTheme]);
  useEffect(() => chart.current?.lookAt(lookedAt), [stage, lookedAt, shape]);

  const count = buckets?.length ?? 0;
  const current = Math.min(lookedAt ?? count - 1, count - 1);
  const interaction = isReady &&
    count > 0 && {
      role: 'slider' as const,
      tabIndex: 0,
      'aria-label': `${name}, chart`,
      'aria-valuemin': 0,
      'aria-valuemax': count - 1,
      'aria-valuenow': current,
      'aria-valuetext': props.words(current),
      onKeyDown: (event: KeyboardEvent) => onKey(event, props, current),
      onBlur: () => props.onLookAt(null, null),
    };
  return (
    <div class="chart" {...interaction}>
      {stage === 'waiting' && <Skeleton rows={7} class="chart-skeleton" />}
      {stage === 'broken' && (
        <p class="chart-broken muted">
          The chart could not be loaded. Reload the page, or see the table.
        </p>
      )}
      <div ref={holder} />
    </div>
  );
}

function onKey(event: KeyboardEvent, props: ChartCardProps, current: number): void {
  const last = (props.buckets?.length ?? 1) - 1;
  const isMarked = props.lookedAt !== null;
  const targets: Record<string, number> = {
    // The first press marks the last bucket.
    ArrowLeft: isMarked ? Math.max(0, current - 1) : current,
    ArrowRight: isMarked ? Math.min(last, current + 1) : current,
    Home: 0,
    End: last,
  };
  const target = targets[event.key];
  if (target !== undefined) {
    event.preventDefault();
    props.onLookAt(target, null);
  } else if (event.key === 'Enter' && isMarked) {
    event.preventDefault();
    props.onOpen(current, null);
  } else if (event.key === 'Escape') {
    props.onLookAt(null, null);
  }
}
