import { useEffect, useState } from 'preact/hooks';

interface SearchFormProps {
  /** What the page shows. */
  text: string;
  label: string;
  placeholder: string;
  hint?: string;
  onSearch: (text: string) => void;
}

/** Searches when it is submitted, so that each search is one entry of the history. */
export function SearchForm({ text, label, placeholder, hint, onSearch }: SearchFormProps) {
  const [typed, setTyped] = useState(text);
  useEffect(() => setTyped(text), [text]);
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    if (typed !== text) onSearch(typed);
  };
  return (
    <form class="search-form" role="search" onSubmit={onSubmit}>
      <input
        class="field"
        type="search"
        aria-label={label}
        placeholder={placeholder}
        title={hint}
        value={typed}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
      <button type="submit" class="button">
        Search
      </button>
    </form>
  );
}
