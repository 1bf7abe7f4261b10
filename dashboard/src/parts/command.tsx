import { CopyButton } from './copy-button.tsx';

interface CommandProps {
  /** What the button says it copies, such as `command that sets a price`. */
  name: string;
  words: readonly string[];
}

/** A command to paste into a terminal. Each word is isolated, so that a name cannot change the direction of the others. */
export function Command({ name, words }: CommandProps) {
  return (
    <div class="command">
      <code class="breaking">
        {words.map((word, index) => (
          <>
            {index > 0 && ' '}
            <bdi key={index}>{word}</bdi>
          </>
        ))}
      </code>
      <CopyButton label={`Copy the ${name}`} text={() => words.join(' ')} />
    </div>
  );
}
