# wiggle-proxy and the wiggle command, built from this checkout:
#   docker build -f deploy/proxy.Dockerfile -t pg-wiggle-proxy .
FROM debian:12 AS build
RUN apt-get update && apt-get install -y --no-install-recommends make
COPY . /src
RUN make -C /src deps PURPOSES=build && make -C /src install-programs DESTDIR=/out

FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends \
	libpq5 libuv1 libnghttp2-14 libprotobuf-c1 libmicrohttpd12 libjansson4 libyaml-0-2 libssl3 zlib1g \
	&& rm -rf /var/lib/apt/lists/*
COPY --from=build /out/ /
USER nobody
EXPOSE 8080 8090
CMD ["wiggle-proxy"]
