import { useStore } from './parts/store.ts';
import { gate } from './session/gate.ts';
import { LinkNotice, LinkQuestion, OpeningFailure } from './session/link-question.tsx';
import { SessionContext } from './session/session.ts';
import { SignIn } from './session/sign-in.tsx';
import { Shell } from './shell/shell.tsx';

export function App() {
  const state = useStore(gate.state);
  switch (state.kind) {
    case 'opening':
      return <p class="boot">Loading…</p>;
    case 'failed':
      return <OpeningFailure reason={state.reason} />;
    case 'out':
      return <SignIn isChecking={false} reason={state.reason} tried={state.tried} />;
    case 'checking':
      return <SignIn isChecking reason={null} tried={state.tried} />;
    case 'asking':
      return <LinkQuestion current={state.current} link={state.link} />;
    case 'notice':
      return <LinkNotice current={state.current} reason={state.reason} />;
    case 'in':
      return (
        <SessionContext.Provider value={state.session}>
          <Shell key={state.session.no} />
        </SessionContext.Provider>
      );
  }
}
