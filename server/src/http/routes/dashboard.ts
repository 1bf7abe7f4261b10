import { fail } from '../../errors.ts';
import { sendAsset } from '../dashboard/send-asset.ts';
import type { Route } from '../route.ts';

const forYears = 'public, max-age=31536000, immutable';

/** The dashboard at the base path. It is one document, since its own routes are URL fragments. */
export const dashboard: Route = (app, { page, basePath }) => {
  const file = { schema: { hide: true }, config: { ignoresQuery: true } };
  const options = { ...file, prefixTrailingSlash: 'slash' } as const;
  app.get('/', options, (request, reply) => {
    if (!page) {
      return fail('route_not_found', {
        say: 'The dashboard has not been built. In the checkout, run "npm ci", then start with "npm start".',
      });
    }
    return sendAsset(request, reply, page.index, 'no-cache');
  });
  // The page's relative URLs need the trailing slash.
  if (basePath !== '') {
    app.get('', { ...file, prefixTrailingSlash: 'no-slash' }, (_request, reply) =>
      reply.redirect(`${basePath}/`, 308),
    );
  }
  app.get<{ Params: { name: string } }>('/assets/:name', options, (request, reply) => {
    const asset = page?.assets.get(request.params.name);
    return asset ? sendAsset(request, reply, asset, forYears) : fail('route_not_found');
  });
};
