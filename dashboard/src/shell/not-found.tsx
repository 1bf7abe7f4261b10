import { homeHref } from '../route/route.ts';
import { PageHeading } from './page-heading.tsx';

export function NotFound() {
  return (
    <>
      <PageHeading title="Page not found" />
      <p>
        There is no page at this address. <a href={homeHref}>Go to the overview.</a>
      </p>
    </>
  );
}
