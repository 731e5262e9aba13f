# The Node that the tests run on. `--build-arg NODE_IMAGE=node:…@sha256:…` pins it by its digest, which cannot be moved.
ARG NODE_IMAGE=node:24.21.0-slim

FROM ${NODE_IMAGE} AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# Without what is optional: valibot has TypeScript as an optional peer, which npm would install with it.
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

FROM ${NODE_IMAGE}
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY package.json package.json
COPY schema schema
COPY sandbox sandbox
COPY src src
# The only folder to which the gateway writes. A volume that is mounted here has its owner and rights.
RUN install --directory --owner=node --group=node --mode=700 /var/lib/recruiting
VOLUME /var/lib/recruiting
# In a folder of its own, which the gateway makes: the rights of a mounted volume are not only the gateway's.
# Half of the gigabyte that compose.yaml and deploy/ allow: answers and requests on their way are outside of the heap.
ENV NODE_ENV=production \
    NODE_OPTIONS=--max-old-space-size=512 \
    HOST=0.0.0.0 \
    ADMIN_HOST=0.0.0.0 \
    TOKEN_STORE=sqlite:/var/lib/recruiting/store/tokens.db \
    TOKEN_RESCUE_DIR=/var/lib/recruiting/rescue
EXPOSE 4000 9464
# Numbers, since Kubernetes cannot tell from a name that it is not root.
USER 1000:1000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 4000}/health`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Not through npm: the gateway handles signals as process 1, and the arguments of `docker run` are its command.
ENTRYPOINT ["node", "--max-semi-space-size=8", "src/main.ts"]
