type ChartModule = typeof import('./chart.ts');

let loading: Promise<ChartModule> | null = null;

/** The charts come in a file of their own: the numbers need not wait for it. */
export function loadCharts(): Promise<ChartModule> {
  loading ??= import('./chart.ts').catch((error: unknown) => {
    // The next try begins anew.
    loading = null;
    throw error;
  });
  return loading;
}

export function preloadCharts(): void {
  loadCharts().catch(() => {
    // Who needs them tries again, and says so.
  });
}
