# The service as a container image. From the root of the checkout: docker build -t tracetally .
ARG NODE_IMAGE=node:26-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /src
COPY . .
RUN npm ci && npm pack -w server --pack-destination /tmp
# The image brings Node.js 26 itself, so the package with another one is removed.
RUN npm install -g --prefix /opt/tracetally /tmp/tracetally-*.tgz \
  && rm -rf /opt/tracetally/lib/node_modules/tracetally/node_modules/node-linux-*

FROM ${NODE_IMAGE}
COPY --from=build /opt/tracetally /opt/tracetally
ARG PACKAGE=/opt/tracetally/lib/node_modules/tracetally
RUN install -d -o 10001 -g 10001 -m 700 /data $PACKAGE/.cache
ENV PATH=/opt/tracetally/bin:$PATH \
    TRACETALLY_HOST=0.0.0.0 \
    TRACETALLY_DATABASE=sqlite:/data/tracetally.db
USER 10001:10001
# Compiled code, without which a start takes 1.2 times as long. Node.js keeps it by user, and later only /data can be written.
RUN NODE_COMPILE_CACHE=$PACKAGE/.cache node $PACKAGE/bin/warm-up.js
WORKDIR /data
VOLUME /data
EXPOSE 4000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["node", "-e", "\
  const { TRACETALLY_PORT = 4000, TRACETALLY_BASE_PATH = '' } = process.env; \
  fetch(`http://127.0.0.1:${TRACETALLY_PORT}${TRACETALLY_BASE_PATH}/healthz`) \
    .then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["tracetally"]
CMD ["serve"]
