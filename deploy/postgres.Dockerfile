# PostgreSQL 15 with the extension, built from this checkout:
#   docker build -f deploy/postgres.Dockerfile -t pg-wiggle-postgres .
FROM postgres:15-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends \
	gcc libc6-dev make pkg-config postgresql-server-dev-15 libjansson-dev libssl-dev
COPY . /src
RUN make -C /src install-extension DESTDIR=/out

FROM postgres:15-bookworm
RUN apt-get update && apt-get install -y --no-install-recommends libjansson4 libssl3 \
	&& rm -rf /var/lib/apt/lists/*
COPY --from=build /out/ /
CMD ["postgres", "-c", "shared_preload_libraries=wiggle"]
