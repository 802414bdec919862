# syntax=docker/dockerfile:1
# The HTTP service with all its languages, ready when it starts, also without a network. See docs/docker.md.

FROM node:22-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm install --no-audit --no-fund
COPY tsconfig.json tsdown.config.ts README.md LICENSE ./
COPY scripts/build.mjs scripts/build-apps.mjs scripts/build-page.mjs scripts/kernel.mjs scripts/
COPY src src
COPY web web
COPY models models
COPY python/cuvette_driver python/cuvette_driver
COPY python/cuvette_torch python/cuvette_torch
RUN npm pack --silent \
    && npm install --global --prefix /opt/cuvette --no-audit --no-fund ./cuvette-*.tgz

FROM node:22-bookworm-slim
SHELL ["/bin/bash", "-o", "pipefail", "-c"]

# Go from Debian's backports: the one of bookworm itself lacks packages that today's programs import.
# hadolint ignore=DL3008
RUN sed -i 's/^Suites: bookworm bookworm-updates$/& bookworm-backports/' /etc/apt/sources.list.d/debian.sources \
    && apt-get update \
    && apt-get install -y --no-install-recommends \
        bash bubblewrap ca-certificates curl file g++ git jq python3 python3-pip python3-venv tini unzip zip \
    && apt-get install -y --no-install-recommends -t bookworm-backports golang-go \
    && rm -rf /var/lib/apt/lists/*

# The image of Node has a user of its own with the usual id.
ARG APP_UID=1000
ARG APP_GID=1000
RUN userdel --remove node \
    && groupadd --non-unique --gid "$APP_GID" cuvette \
    && useradd --non-unique --uid "$APP_UID" --gid "$APP_GID" --create-home --shell /bin/bash cuvette \
    && install -d -m 700 -o cuvette -g cuvette /data /run/cuvette

COPY --from=build /opt/cuvette /opt/cuvette
ENV PATH=/opt/cuvette/bin:$PATH \
    LANG=C.UTF-8 \
    XDG_DATA_HOME=/data \
    XDG_RUNTIME_DIR=/run/cuvette \
    CUVETTE_PYTHON=/usr/bin/python3 \
    CUVETTE_HOST=0.0.0.0

USER $APP_UID:$APP_GID
WORKDIR /home/cuvette

# The service makes the Python environment, and what Go and C++ build faster with, when it first starts: here, not in the container.
ARG PYTHON_PACKAGES=""
# hadolint ignore=DL3001
RUN export PIP_NO_CACHE_DIR=1 XDG_DATA_HOME=/tmp/build XDG_RUNTIME_DIR=/tmp/build CACHE=.cache/cuvette \
    && { cuvette serve --host 127.0.0.1 --sandbox off & } \
    && timeout 7200 bash -c "until ls $CACHE/python/*/ready $CACHE/programs/go/prepared-* $CACHE/programs/cpp/*/ready; do sleep 2; done" > /dev/null 2>&1 \
    && kill %1 && wait %1 \
    && echo "$PYTHON_PACKAGES" | xargs --no-run-if-empty "$CACHE"/python/*/bin/python -m pip install \
        --disable-pip-version-check --constraint "$CACHE"/python/*/held.txt \
    && rm -rf /tmp/build

VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
    CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 8000}/health`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["tini", "--", "cuvette"]
CMD ["serve"]
