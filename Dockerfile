# Owns the production image: the service without its tests and tools of development, and uWebSockets.js from its publisher. How it is built, run
# and stopped: docs/production-image.md.

# Debian 13: uWebSockets.js wants glibc 2.38 or newer. The same node as package.json pins.
ARG BASE=node:24.21.0-trixie-slim

FROM ${BASE} AS packages
WORKDIR /parley
# The publisher has its packages on GitHub only, so git fetches this one. The tag is the version that the tests run.
ARG UWS_TAG=v20.57.0
RUN apt-get update \
  && apt-get install -y --no-install-recommends ca-certificates git \
  && rm -rf /var/lib/apt/lists/*
COPY package.json package-lock.json .npmrc ./
# Without the Postgres binaries for a first start: production has a server of its own (DATABASE_URL).
RUN npm ci --omit=dev --omit=optional --no-audit --no-fund
# Apart, so that neither the lock file nor the packages above change. Of its binaries those of this machine stay: one for each version of node.
WORKDIR /uws
RUN npm init -y >/dev/null \
  && npm install --no-package-lock --ignore-scripts --no-audit --no-fund "uWebSockets.js@github:uNetworking/uWebSockets.js#${UWS_TAG}" \
  && find node_modules/uWebSockets.js -name '*.node' \
    ! -name "uws_linux_$(node -p process.arch)_$(node -p process.versions.modules).node" -delete \
  && mv node_modules/uWebSockets.js /parley/node_modules/

FROM ${BASE}
ENV NODE_ENV=production \
  MALLOC_ARENA_MAX=2 \
  MALLOC_TRIM_THRESHOLD_=131072 \
  HOST=0.0.0.0 \
  PORT=8080 \
  HTTP_DRIVER=uws \
  DATA_DIR=/data
WORKDIR /parley
COPY --from=packages /parley/node_modules ./node_modules
COPY . .
# A driver that does not load ends the build, not the first start.
RUN node --input-type=module --eval "await import('uWebSockets.js')" \
  && mkdir /data .compiled && chown node:node /data .compiled
USER node
# Compiled once, here, by the user and with the flags that run it: of others node takes nothing. Half of the CPU of loading at each start; nobody writes there afterwards.
ENV NODE_COMPILE_CACHE=/parley/.compiled
RUN node --max-semi-space-size=8 --input-type=module --eval "await import('./app/parley.ts'); await import('./app/voice-side.ts')" \
  && chmod -R a-w .compiled
VOLUME /data
# HTTP with signaling, and SIP. Sound has ranges of UDP ports (MEDIA_PORTS, SIP_MEDIA_PORTS), for which the network of the host is the better way.
EXPOSE 8080/tcp 5060/udp 5060/tcp 5061/tcp
# The service hands its calls over, or ends them in order: give it longer than DRAIN_TIMEOUT_SECONDS and SHUTDOWN_GRACE_SECONDS (docker stop --time).
STOPSIGNAL SIGTERM
# Whose certificate it is says nothing here: this machine asks itself.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "--no-warnings", "--eval", "const { PORT, TLS_CERT } = process.env; process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'; fetch(`http${TLS_CERT ? 's' : ''}://127.0.0.1:${PORT}/health`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
# As npm start does it, without npm between the signal and the service.
CMD ["node", "--max-semi-space-size=8", "tools/start/start.ts"]
