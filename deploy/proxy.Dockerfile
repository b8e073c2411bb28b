# wiggle-proxy and the wiggle command, built from this checkout:
#   docker build -f deploy/proxy.Dockerfile -t pg-wiggle-proxy:0.1 .
# Runs as nobody and writes nothing: give it a read-only root filesystem.
FROM debian:12 AS build
RUN apt-get update && apt-get install -y --no-install-recommends make
COPY . /src
RUN make -C /src deps PURPOSES=build && make -C /src install-programs DESTDIR=/out

FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates \
	libjansson4 libmicrohttpd12 libnghttp2-14 libpq5 libprotobuf-c1 libssl3 libuv1 libyaml-0-2 zlib1g \
	&& rm -rf /var/lib/apt/lists/*
COPY --from=build /out/ /
USER 65534:65534
EXPOSE 8080 8090
STOPSIGNAL SIGTERM
CMD ["wiggle-proxy"]
