type ChartModule = typeof import('./chart.ts');

let loading: Promise<ChartModule> | null = null;

/** The charts are in a separate file, so that the numbers do not wait for it. */
export function loadCharts(): Promise<ChartModule> {
  loading ??= import('./chart.ts').catch((error: unknown) => {
    // The next attempt loads the file again.
    loading = null;
    throw error;
  });
  return loading;
}

export function preloadCharts(): void {
  loadCharts().catch(() => {
    // The chart itself tries again and shows the error.
  });
}
