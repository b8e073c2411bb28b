# PostgreSQL with the extension, built from this checkout:
#   docker build -f deploy/postgres.Dockerfile -t pg-wiggle-postgres:16 --build-arg PG=16 .
# PG: 15 to 18. For CloudNativePG, whose operator brings its own entry point and user:
#   docker build -f deploy/postgres.Dockerfile -t pg-wiggle-cnpg:16 --build-arg PG=16 \
#     --build-arg BASE=ghcr.io/cloudnative-pg/postgresql:16-bookworm --build-arg RUN_AS=26 .
ARG PG=16
ARG BASE=postgres:${PG}-bookworm

FROM ${BASE} AS build
ARG PG
USER root
RUN apt-get update && apt-get install -y --no-install-recommends \
	gcc libc6-dev make pkg-config postgresql-server-dev-${PG} libjansson-dev libssl-dev
COPY . /src
RUN make -C /src install-extension DESTDIR=/out PG_CONFIG=/usr/lib/postgresql/${PG}/bin/pg_config

FROM ${BASE}
ARG RUN_AS=root
USER root
RUN apt-get update && apt-get install -y --no-install-recommends libjansson4 libssl3 \
	&& rm -rf /var/lib/apt/lists/*
COPY --from=build /out/ /
USER ${RUN_AS}
CMD ["postgres", "-c", "shared_preload_libraries=wiggle"]
