# The edge as an image: HAProxy and edge-spoa, started by `edge-spoa run`.
#
#   docker build -f compose/edge.Dockerfile --build-arg VERSION="$(git describe --always --dirty)" -t edge-proxy .
#
# How to run it stands in compose/README.md. Both stages are of one Debian release, so that what was linked is what runs.

ARG DEBIAN=trixie
# 3.2 or newer, a long-term release. From 3.4 on HAProxy applies header operations itself, which costs less.
ARG HAPROXY=3.4

FROM debian:${DEBIAN}-slim AS build
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
WORKDIR /src
COPY compose/local/deps.sh compose/local/apt-packages.txt compose/local/
RUN compose/local/deps.sh build
COPY Makefile ./
COPY schemas schemas
COPY common common
COPY spoa spoa
COPY haproxy haproxy
COPY compose/healthcheck.pl compose/
ARG VERSION=unknown
# The launcher finds haproxy/ by its place beside the binary's folder. What the binary is linked with is asked of the
# binary: the runtime stage installs just that.
RUN make -j"$(nproc)" VERSION="$VERSION"; \
    install -D -m 755 -t /out/usr/local/bin build/release/edge-spoa; \
    install -D -m 755 compose/healthcheck.pl /out/usr/local/bin/edge-healthcheck; \
    cd haproxy; \
    find . -type f ! -name README.md -exec install -D -m 644 {} /out/usr/local/share/edge-proxy/haproxy/{} \; ; \
    cd /out/usr/local; \
    strip --strip-debug bin/edge-spoa; \
    ldd bin/edge-spoa | awk '$2 == "=>" { print $3 }' | xargs realpath | xargs dpkg-query --search | cut -d: -f1 | \
        sort -u >share/edge-proxy/debian-packages

FROM haproxy:${HAPROXY}-${DEBIAN}
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
USER 0:0
COPY --from=build /out/ /
RUN apt-get update; \
    xargs apt-get install -y --no-install-recommends ca-certificates </usr/local/share/edge-proxy/debian-packages; \
    rm -rf /var/lib/apt/lists/*; \
    install -d -o 99 -g 99 -m 755 /run/edge; \
    edge-spoa --version

ARG VERSION=unknown
LABEL org.opencontainers.image.title="edge-proxy" \
      org.opencontainers.image.description="HAProxy with a policy agent: blocks, rate limits, header rules" \
      org.opencontainers.image.version="${VERSION}"

# Sockets are made in a folder of the edge's own, because a tmpfs mounted at /run/edge may be open to everybody.
ENV EDGE_HAPROXY=/usr/local/sbin/haproxy \
    EDGE_RUN_DIR=/run/edge/sockets

# The base image's account "haproxy", by number so that a platform can see that it is not root.
USER 99:99
WORKDIR /
EXPOSE 8080 8081
# Drains; SIGUSR1, the base image's choice, would exchange the agents.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s --retries=3 CMD ["/usr/local/bin/edge-healthcheck"]
ENTRYPOINT ["/usr/local/bin/edge-spoa", "run"]
CMD []
