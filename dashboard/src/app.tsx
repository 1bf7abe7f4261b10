import { useStore } from './parts/store.ts';
import { gate } from './session/gate.ts';
import { SessionContext } from './session/session.ts';
import { SignIn } from './session/sign-in.tsx';
import { Shell } from './shell/shell.tsx';

export function App() {
  const state = useStore(gate.state);
  switch (state.kind) {
    case 'out':
      return <SignIn isChecking={false} reason={state.reason} triedKey={state.triedKey} />;
    case 'checking':
      return <SignIn isChecking reason={null} triedKey={state.triedKey} />;
    case 'in':
      return (
        <SessionContext.Provider value={state.session}>
          <Shell key={state.session.key} />
        </SessionContext.Provider>
      );
  }
}
