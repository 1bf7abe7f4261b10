import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Skeleton } from '../parts/skeleton.tsx';
import { useStore } from '../parts/store.ts';
import { theme } from '../shell/theme.ts';
import type { Chart, ChartShape } from './chart.ts';
import { loadCharts } from './chart-loader.ts';

interface ChartCardProps extends Omit<ChartShape, 'onLookAt' | 'labels'> {
  name: string;
  /** Null while the days are loading. */
  labels: readonly string[] | null;
  lookedAt: number | null;
  onLookAt: (day: number | null) => void;
  /** The selected day; null if there is none. */
  dayLabel: string | null;
  /** What the value refers to while no day is selected. */
  restLabel?: string;
  /** The value as text. */
  children: ComponentChildren;
}

/** A chart below its value, which is that of the selected day or of all seven days. */
export function ChartCard(props: ChartCardProps) {
  const { name, labels, values, lookedAt, dayLabel, restLabel = '7 days', children } = props;
  const holder = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart | null>(null);
  const [stage, setStage] = useState<'waiting' | 'drawn' | 'broken'>('waiting');
  const currentTheme = useStore(theme);
  const isReady = labels !== null;

  useEffect(() => {
    const element = holder.current;
    if (!isReady || element === null) return undefined;
    let isGone = false;
    loadCharts()
      .then(({ drawChart }) => {
        if (isGone) return;
        chart.current = drawChart(element, { ...props, labels });
        setStage('drawn');
      })
      .catch(() => setStage('broken'));
    return () => {
      isGone = true;
      chart.current?.destroy();
      chart.current = null;
    };
  }, [isReady]);

  // Also after the first drawing: the numbers may have changed while the chart code was loading.
  useEffect(() => {
    if (labels !== null) chart.current?.setData({ labels, values, bad: props.bad });
  }, [stage, JSON.stringify([labels, values, props.bad])]);
  useEffect(() => chart.current?.repaint(), [currentTheme]);
  useEffect(() => chart.current?.lookAt(lookedAt), [stage, lookedAt]);

  return (
    <div class="card chart-card">
      <div class="chart-heading">
        <h3>{name}</h3>
        <p class="chart-value">
          {labels !== null && (
            <>
              <span class="muted">{dayLabel ?? restLabel}</span> {children}
            </>
          )}
        </p>
      </div>
      <div
        class="chart"
        role="img"
        aria-label={`${name} for the last 7 days; "Table" shows the numbers`}
      >
        {stage === 'waiting' && <Skeleton rows={7} class="chart-skeleton" />}
        {stage === 'broken' && (
          <p class="chart-broken muted">
            The chart could not be loaded. Reload the page, or see the table.
          </p>
        )}
        <div ref={holder} />
      </div>
    </div>
  );
}
