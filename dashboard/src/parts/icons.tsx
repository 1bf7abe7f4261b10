import type { ComponentChildren } from 'preact';

/** Decorative icons; the control around an icon has the accessible name. */
function Icon({ children }: { children: ComponentChildren }) {
  return (
    <svg
      class="icon"
      viewBox="0 0 16 16"
      width="16"
      height="16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      {children}
    </svg>
  );
}

export function CopyIcon() {
  return (
    <Icon>
      <rect x="5.5" y="5.5" width="8" height="8" rx="1.5" />
      <path d="M10.5 5.5V4A1.5 1.5 0 0 0 9 2.5H4A1.5 1.5 0 0 0 2.5 4v5A1.5 1.5 0 0 0 4 10.5h1.5" />
    </Icon>
  );
}

export function CheckIcon() {
  return (
    <Icon>
      <path d="m3 8.5 3.5 3.5L13 4.5" />
    </Icon>
  );
}

export function PauseIcon() {
  return (
    <Icon>
      <path d="M5.5 3.5v9M10.5 3.5v9" />
    </Icon>
  );
}

export function PlayIcon() {
  return (
    <Icon>
      <path d="M5 3.2v9.6L12.5 8z" />
    </Icon>
  );
}

export function SunIcon() {
  return (
    <Icon>
      <circle cx="8" cy="8" r="2.8" />
      <path d="M8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.4 3.4l.7.7M11.9 11.9l.7.7M3.4 12.6l.7-.7M11.9 4.1l.7-.7" />
    </Icon>
  );
}

export function MoonIcon() {
  return (
    <Icon>
      <path d="M13.5 9.6A5.8 5.8 0 0 1 6.4 2.5a5.8 5.8 0 1 0 7.1 7.1z" />
    </Icon>
  );
}

export function SignOutIcon() {
  return (
    <Icon>
      <path d="M6 2.5H3.5a1 1 0 0 0-1 1v9a1 1 0 0 0 1 1H6M10.5 11l3-3-3-3M13.5 8H6" />
    </Icon>
  );
}

export function ArrowUpIcon() {
  return (
    <Icon>
      <path d="M8 13V3M3.5 7.5 8 3l4.5 4.5" />
    </Icon>
  );
}

export function DownloadIcon() {
  return (
    <Icon>
      <path d="M8 2.5v7M4.8 6.8 8 10l3.2-3.2M3 13h10" />
    </Icon>
  );
}

export function CloseIcon() {
  return (
    <Icon>
      <path d="m4.5 4.5 7 7M11.5 4.5l-7 7" />
    </Icon>
  );
}

export function PlusIcon() {
  return (
    <Icon>
      <path d="M8 3.5v9M3.5 8h9" />
    </Icon>
  );
}

/** Four strokes and a fifth across them: a tally mark. */
export function TallyMark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" width="24" height="24" fill="none" aria-hidden="true">
      <rect class="mark-ground" width="32" height="32" rx="7" />
      <path class="mark-strokes" d="M8 8v16M13 8v16M18 8v16M23 8v16" />
      <path class="mark-slash" d="M5.5 20.5 26.5 11.5" />
    </svg>
  );
}
