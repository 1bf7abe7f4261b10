import { SearchForm } from '../parts/search-form.tsx';
import { QuestionBar } from '../question/question-bar.tsx';
import type { Asked } from '../question/use-asked.ts';
import { navigation } from '../route/navigation.ts';
import { tracesHref } from '../route/route.ts';
import type { TracesRoute } from '../route/route.ts';

/** Range, filters, and a search in the texts. */
export function TracesBar({ route, asked }: { route: TracesRoute; asked: Asked }) {
  const { question } = route;
  return (
    <QuestionBar route={route} asked={asked}>
      <SearchForm
        text={route.text}
        label="Search in input, output and error messages"
        placeholder="Search texts"
        hint="Upper and lower case matter."
        onSearch={(text) => navigation.go(tracesHref({ question, text }))}
      />
    </QuestionBar>
  );
}
