import { runDashboardBundle } from '../support/bundle.ts';

await runDashboardBundle(4);
