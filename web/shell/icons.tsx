/** Draws the page's icons as SVG, each a few strokes on a grid of 16. They are decoration: what a button does is its label's to say. */

const PATHS = {
  play: 'M5 3.5v9l7-4.5z',
  stop: 'M4.5 4.5h7v7h-7z',
  again: 'M12.5 8A4.5 4.5 0 1 1 11 4.6M11.2 2v2.8H8.4',
  edit: 'M3 13l.6-2.8 6.9-6.9 2.2 2.2-6.9 6.9zM9.4 4.4l2.2 2.2',
  copy: 'M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z',
  link: 'M6.8 9.2a2.5 2.5 0 0 0 3.6 0l2-2a2.5 2.5 0 0 0-3.6-3.6l-.9.9M9.2 6.8a2.5 2.5 0 0 0-3.6 0l-2 2a2.5 2.5 0 0 0 3.6 3.6l.9-.9',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  close: 'M4 4l8 8M12 4l-8 8',
  plus: 'M8 3v10M3 8h10',
  chevron: 'M6 4l4 4-4 4',
  down: 'M8 3v9.5M4 8.8l4 4 4-4',
  upload: 'M8 10.5V3M4.8 6L8 2.8 11.2 6M3 13h10',
  download: 'M8 3v7.5M4.8 7.5L8 10.7l3.2-3.2M3 13h10',
  sun: 'M8 5.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6zM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9',
  moon: 'M13 9.8A5.5 5.5 0 0 1 6.2 3a5.5 5.5 0 1 0 6.8 6.8z',
  table: 'M2.5 3.5h11v9h-11zM2.5 6.5h11M6.5 3.5v9',
  folder: 'M2 4.5V12.5h12v-7H7.5L6 3.5H2z',
  file: 'M4 2.5h5l3 3v8H4zM9 2.5v3h3',
  search: 'M7 3a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM10 10l3.5 3.5',
  flask: 'M6 2.5h4M6.8 2.5v4L3.2 12a1 1 0 0 0 .9 1.5h7.8a1 1 0 0 0 .9-1.5L9.2 6.5v-4M5 10h6',
  gauge: 'M2.5 12a6 6 0 1 1 11 0M8 11l2.8-4',
  panel: 'M2.5 3h11v10h-11zM10 3v10',
  keys: 'M2 4.5h12v7H2zM4.2 7h.1M6.7 7h.1M9.2 7h.1M11.7 7h.1M5 9.4h6',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

interface IconButtonProps {
  icon: IconName;
  label: string;
  onClick(event: MouseEvent): void;
  isPressed?: boolean;
  class?: string;
  disabled?: boolean;
}

/** A button that is seen as an icon and heard, and hovered over, as its label. */
export function IconButton({ icon, label, onClick, isPressed, class: name = '', disabled = false }: IconButtonProps) {
  return (
    <button
      type="button"
      class={`icon-button ${name}`}
      title={label}
      aria-label={label}
      aria-pressed={isPressed}
      disabled={disabled}
      onClick={onClick}
    >
      <Icon name={icon} />
    </button>
  );
}
