import { render } from 'preact';
import { App } from './app.tsx';
import { gate } from './session/gate.ts';
import { startTheme } from './shell/theme.ts';

startTheme();
gate.open();

const root = document.getElementById('app');
if (root !== null) {
  root.replaceChildren();
  render(<App />, root);
}
