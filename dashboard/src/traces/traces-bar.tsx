import { useEffect, useState } from 'preact/hooks';
import { QuestionBar } from '../question/question-bar.tsx';
import type { Asked } from '../question/use-asked.ts';
import { navigation } from '../route/navigation.ts';
import { tracesHref } from '../route/route.ts';
import type { TracesRoute } from '../route/route.ts';

/** Range, filters, and a search in the texts. */
export function TracesBar({ route, asked }: { route: TracesRoute; asked: Asked }) {
  const { question, text } = route;
  const [typed, setTyped] = useState(text);
  useEffect(() => setTyped(text), [text]);
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    if (typed !== text) navigation.go(tracesHref({ question, text: typed }));
  };
  return (
    <QuestionBar route={route} asked={asked}>
      <form class="search-form" role="search" onSubmit={onSubmit}>
        <input
          class="field"
          type="search"
          aria-label="Search in input, output and error messages"
          placeholder="Search texts"
          title="Upper and lower case matter."
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        <button type="submit" class="button">
          Search
        </button>
      </form>
    </QuestionBar>
  );
}
