import { useId } from 'preact/hooks';

interface ChoiceProps<V extends string> {
  label: string;
  /** Whether the label is visible, or only for screen readers. */
  isLabelShown?: boolean;
  options: readonly { value: V; label: string }[];
  value: V;
  onChange: (value: V) => void;
}

/** A choice between a few visible options: radio buttons that look like one control. */
export function Choice<V extends string>({
  label,
  isLabelShown = false,
  options,
  value,
  onChange,
}: ChoiceProps<V>) {
  const name = useId();
  return (
    <fieldset class="choice">
      <legend class={isLabelShown ? '' : 'visually-hidden'}>{label}</legend>
      <div class="choice-options">
        {options.map((option) => (
          <label key={option.value}>
            <input
              type="radio"
              class="visually-hidden"
              name={name}
              value={option.value}
              checked={option.value === value}
              onChange={() => onChange(option.value)}
            />
            <span>{option.label}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}
