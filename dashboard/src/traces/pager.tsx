import { useEffect, useState } from 'preact/hooks';
import { tracesPerPage } from '../api/reads.ts';
import { exactCount } from '../format/count.ts';
import { navigation } from '../route/navigation.ts';
import { tracesHref } from '../route/route.ts';

interface PagerProps {
  page: number;
  pages: number;
  total: number;
}

export function Pager({ page, pages, total }: PagerProps) {
  const first = (page - 1) * tracesPerPage + 1;
  const last = Math.min(total, page * tracesPerPage);
  return (
    <nav class="pager" aria-label="Pages">
      <p class="pager-range muted">
        {exactCount(first)}–{exactCount(last)} of {exactCount(total)}
      </p>
      <div class="pager-steps">
        <Step label="First page" sign="«" to={page > 1 ? 1 : null} />
        <Step label="Previous page" sign="‹" to={page > 1 ? page - 1 : null} />
        <PageBox page={page} pages={pages} />
        <Step label="Next page" sign="›" to={page < pages ? page + 1 : null} />
        <Step label="Last page" sign="»" to={page < pages ? pages : null} />
      </div>
    </nav>
  );
}

interface StepProps {
  label: string;
  sign: string;
  /** Null if there is no such page. */
  to: number | null;
}

function Step({ label, sign, to }: StepProps) {
  const shape = { class: 'button icon', 'aria-label': label, title: label };
  const text = <span aria-hidden="true">{sign}</span>;
  if (to !== null) {
    return (
      <a {...shape} href={tracesHref({ page: to })}>
        {text}
      </a>
    );
  }
  // In HTML, a disabled link is one without an address.
  return (
    <a {...shape} role="link" aria-disabled="true">
      {text}
    </a>
  );
}

function PageBox({ page, pages }: { page: number; pages: number }) {
  const [text, setText] = useState(String(page));
  useEffect(() => setText(String(page)), [page]);
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    const asked = Math.round(Number(text));
    const target = Number.isFinite(asked) ? Math.min(pages, Math.max(1, asked)) : page;
    setText(String(target));
    if (target !== page) navigation.go(tracesHref({ page: target }));
  };
  return (
    <form class="page-box" onSubmit={onSubmit} noValidate>
      <label>
        Page{' '}
        <input
          class="field"
          type="text"
          inputMode="numeric"
          style={{ width: `calc(${Math.max(3, String(pages).length)}ch + 12px)` }}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onFocus={(event) => event.currentTarget.select()}
        />
      </label>{' '}
      of {exactCount(pages)}
    </form>
  );
}
