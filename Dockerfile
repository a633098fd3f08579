# Tidemark's daemon and its command in one image. `deploy/check-dockerfile` runs these very commands in
# a bare Debian, without a container engine.

FROM debian:13-slim AS build
WORKDIR /src
# The list of packages is in `dev`; by itself it keeps this layer until the list changes.
COPY dev dev
RUN ./dev install-deps build
COPY . .
RUN ./dev build && strip build/bin/tidemarkd build/bin/tidemark

FROM debian:13-slim
# What the two programs load, and Mesa for a GPU that is passed in with --device /dev/dri.
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        libabsl20240722 libegl1 libegl-mesa0 libepoxy0 libfmt10 libgl1-mesa-dri libgrpc++1.51t64 \
        libhwy1t64 libjemalloc2 libprometheus-cpp-core1.0 libprotobuf32t64 libspdlog1.15 libssl3t64 \
        libtomlplusplus3t64 libxxhash0 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --no-create-home --uid 970 tidemark \
    && install -d -o tidemark -g tidemark /var/lib/tidemark
COPY --from=build /src/build/bin/tidemarkd /src/build/bin/tidemark /usr/local/bin/
COPY deploy/tidemark.toml /etc/tidemark/tidemark.toml

# Inside a container the network is the container's own; what of it is published is up to whoever runs
# it. JSON logs, because nobody reads them on a terminal.
ENV TIDEMARK_CONFIG=/etc/tidemark/tidemark.toml \
    TIDEMARK_DATA_DIR=/var/lib/tidemark \
    TIDEMARK_GRPC=0.0.0.0:7070 \
    TIDEMARK_TCP=0.0.0.0:7071 \
    TIDEMARK_HTTP=0.0.0.0:7072 \
    TIDEMARK_STATSD=0.0.0.0:8125 \
    TIDEMARK_ALLOW_INSECURE=true \
    TIDEMARK_LOG_FORMAT=json \
    TIDEMARK_SERVER=127.0.0.1:7070
USER tidemark
VOLUME /var/lib/tidemark
EXPOSE 7070 7071 7072 8125 8125/udp
# gRPC answers once the log has been replayed; failures before that do not count.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10m CMD ["tidemark", "info"]
ENTRYPOINT ["tidemarkd"]
