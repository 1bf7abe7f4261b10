import { MoonIcon, SunIcon } from '../parts/icons.tsx';
import { useStore } from '../parts/store.ts';
import { theme, toggleTheme } from './theme.ts';

export function ThemeToggle() {
  const isDark = useStore(theme) === 'dark';
  const label = `Switch to ${isDark ? 'light' : 'dark'} theme`;
  return (
    <button
      type="button"
      class="button icon quiet"
      aria-label={label}
      title={label}
      onClick={toggleTheme}
    >
      {isDark ? <SunIcon /> : <MoonIcon />}
    </button>
  );
}
