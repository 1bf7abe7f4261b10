import { overviewHref } from '../route/route.ts';
import { PageHeading } from './page-heading.tsx';

export function NotFound() {
  return (
    <>
      <PageHeading title="There is no such page" />
      <p>
        The address does not lead anywhere here. <a href={overviewHref}>Go to the overview.</a>
      </p>
    </>
  );
}
