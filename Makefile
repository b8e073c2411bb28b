# pg_wiggle: the extension (PGXS), wiggle-proxy and the wiggle command.
# "make help" lists what there is to do. What is built goes to build/ (and
# wiggle.so here); what runs lives below .wiggle/.

PG_CONFIG ?= pg_config
PROGDIR ?= /usr/local/bin
PYTHON ?= /usr/bin/python3
ROOT := $(CURDIR)
export PG_CONFIG PROGDIR PYTHON ROOT WIGGLE_STATE

ifneq ($(words $(CURDIR)),1)
$(error The path of this checkout must not contain blanks, which PostgreSQL's makefiles cannot take: '$(CURDIR)')
endif

# pg_regress inputs in flow order; each file is named here once.
REGRESS = 00_helpers 01_install 02_definitions 03_validation 04_start 05_context \
	06_steps 07_poll 08_retry 09_leases 10_sleep 11_cancel 12_loops 13_report 14_batch \
	15_handoff 16_transitions 17_lists 18_shard 19_guards 20_subtransactions \
	21_administrator 22_messages 23_forks 24_foreach 25_shared 26_branches 27_signals 28_subworkflows 29_cascades 30_sagas 31_events 32_schedules 33_cron 34_retention 35_grouped 36_local 37_reading 38_poison 39_registry 40_auth 42_shares 41_sweep
# Isolation specs of regress/isolation/specs.
ISOLATION = claim_claim claim_cancel claim_expire report_expire report_cancel heartbeat_report \
	start_start register_register batch_crossing old_snapshot graph_other_session \
	join_join signal_signal signal_deadline child_parent schedule_schedule compensate_expire event_horizon purge_parent

# The extension's own sources, and core/ compiled with the server's flags.
EXT_SRCS = $(addprefix extension/,$(addsuffix .c, \
	wiggle version errors guc clock shmem mark wake guard durable store \
	graph transition loops \
	instance scope token view ready lease timer comp_log \
	work event mint ending fork drive subflow task step_io start report signal_instance cancel claim \
	expire leftover resting schedule retention batch \
	pass clock_worker launcher lifecycle \
	api api_definition api_instance api_task api_batch api_schedule api_cluster))

ifeq ($(origin PGXS),command line)
# ------------------------------------------------------- the extension alone

EXTENSION = extension/wiggle
DATA = $(wildcard extension/wiggle--*.sql)
MODULE_big = wiggle

# The control file has the version. The library runs with the SQL objects that an update script leads from, too.
WIG_VERSION := $(shell sed -n "s/^default_version *= *'\(.*\)'.*/\1/p" extension/wiggle.control)
comma := ,
WIG_FORMER := $(patsubst extension/wiggle--%--$(WIG_VERSION).sql,%,$(wildcard extension/wiggle--*--$(WIG_VERSION).sql))

CORE_SRCS = $(addprefix core/,$(addsuffix .c, \
	error arena textbuf ids bucket jsontext jsonmerge nearest retry cron \
	definition definition_check definition_decode definition_write \
	flow flow_hint flow_json flow_node flow_tree flow_value flow_write))
OBJS = $(patsubst %.c,build/obj/pg/%.o,$(EXT_SRCS) $(CORE_SRCS))

# The server's own headers are a system's: their warnings are not ours.
PG_CPPFLAGS = -I$(ROOT)/extension -I$(ROOT)/core -isystem $(shell $(PG_CONFIG) --includedir-server)
PG_CFLAGS = -Wextra -Wno-declaration-after-statement -Wno-unused-parameter -Wno-missing-format-attribute -Werror $(EXT_CFLAGS)
SHLIB_LINK = -ljansson -lcrypto
override with_llvm := no

REGRESS_OPTS = --inputdir=$(ROOT) --outputdir=regress/out
ISOLATION_OPTS = --inputdir=regress/isolation --outputdir=regress/out_iso --load-extension=wiggle

include $(PGXS)
-include $(OBJS:.o=.d)

build/obj/pg/extension/version.o: $(DATA) extension/wiggle.control Makefile
build/obj/pg/extension/version.o: override CPPFLAGS += \
	-DWIG_LIBRARY_VERSION='"$(WIG_VERSION)"' -DWIG_FORMER_VERSIONS='$(patsubst %,"%"$(comma),$(WIG_FORMER))'

build/obj/pg/%.o: %.c
	@mkdir -p $(@D)
	$(if $(V),,@echo "CC $<"; )$(COMPILE.c) -MMD -MP -o $@ $<

else
# ------------------------------------------------------------- the whole

PGXS_MK = $(wildcard $(shell $(PG_CONFIG) --pgxs 2>/dev/null))
EXT_MAKE = $(MAKE) --no-print-directory -f Makefile PGXS=$(PGXS_MK)
PROGRAMS = $(if $(wildcard proxy/Makefile),proxy) $(if $(wildcard cli/Makefile),cli)
QUIET_SUB = $(MAKE) --no-print-directory

.PHONY: all extension programs core proxy cli install install-extension \
	install-programs uninstall clean help \
	deps stage demo check check-unit check-sql check-isolation check-property check-tap \
	check-client check-deploy check-images check-versions deb soak installcheck lint bench asan

all: extension programs

extension: need-server-headers
	+@$(EXT_MAKE) all

.PHONY: need-server-headers
need-server-headers:
	@test -n "$(PGXS_MK)" || { echo 'No PostgreSQL server headers (pg_config: $(PG_CONFIG)). Run: make deps' >&2; exit 1; }

programs: $(PROGRAMS)
core:
	+@$(QUIET_SUB) -C core
proxy: core
	+@$(QUIET_SUB) -C proxy
cli: core proxy
	+@$(QUIET_SUB) -C cli

install: install-extension install-programs

install-extension: extension
	+@$(EXT_MAKE) install

install-programs: programs
	install -d '$(DESTDIR)$(PROGDIR)'
	$(if $(filter proxy,$(PROGRAMS)),install -m 755 build/wiggle-proxy '$(DESTDIR)$(PROGDIR)/')
	$(if $(filter cli,$(PROGRAMS)),install -m 755 build/wiggle '$(DESTDIR)$(PROGDIR)/')

# Debian packages in build/deb.
deb: all
	+@scripts/deb

uninstall: need-server-headers
	+@$(EXT_MAKE) uninstall
	rm -f '$(DESTDIR)$(PROGDIR)/wiggle-proxy' '$(DESTDIR)$(PROGDIR)/wiggle'

# ------------------------------------------------------------ what to do

deps:
	@scripts/deps $(PURPOSES)

stage:
	+@$(QUIET_SUB) -s all
	@scripts/stage

demo:
	@scripts/deps build
	+@$(QUIET_SUB) -s all
	+@scripts/stage >/dev/null
	@scripts/as-user demo scripts/demo

SUITES = unit sql isolation property tap client deploy

check: all
	+@scripts/check $(SUITES)

# A suite alone builds only what it needs.
$(addprefix check-,$(SUITES)): check-%:
	+@scripts/check $*

# The images' build steps, in place of a container engine; as root, and it takes minutes.
check-images: deb
	@scripts/images.py

soak: all
	+@scripts/check soak

.PHONY: list-regress list-isolation list-sources
list-regress:
	@echo $(REGRESS)
list-isolation:
	@echo $(ISOLATION)
list-sources:
	@echo $(EXT_SRCS)

# Against a server that has the extension installed and preloaded.
installcheck: need-server-headers
	+@$(EXT_MAKE) installcheck REGRESS='$(REGRESS)' ISOLATION='$(ISOLATION)'

# The extension on other versions of PostgreSQL; MAJORS= names some.
check-versions:
	+@scripts/versions $(MAJORS)

# Published clients and tools; AREAS= names some of regress/interop/*.py.
interop: all
	@scripts/interop $(AREAS)

lint:
	@regress/lint/run

bench: all
	+@$(QUIET_SUB) -C bench
	+@scripts/stage >/dev/null
	@scripts/as-user bench bench/run $(BENCH_ARGS)
	@mkdir -p bench/results && cp "$$(scripts/state ensure)/bench/results/latest.json" bench/results/latest.json

# The programs under AddressSanitizer and UBSan (build/asan), the unit tests of
# the same build, and the client tests against it.
asan:
	+@$(QUIET_SUB) -C core SAN=1
	+@$(QUIET_SUB) -C proxy SAN=1
	+@$(QUIET_SUB) -C cli SAN=1
	+@$(QUIET_SUB) -C regress/unit check SAN=1
	+@WIGGLE_SAN=1 scripts/check client

help:
	@sed -n 's/^## //p' Makefile

## make             build the extension, build/wiggle-proxy and build/wiggle
## make deps        install the Debian packages that building and testing need
## make demo        two shards, a proxy and a worker; 8 workflows run to their end
## make stage       a private PostgreSQL installation with all of it; prints where
## make install     install all (DESTDIR; PROGDIR=/usr/local/bin for the programs)
## make uninstall   take it away again
## make deb         Debian packages of all of it, in build/deb
## make check       every test; also check-unit, check-sql, check-isolation,
##                  check-property, check-tap, check-client, check-deploy
## make check-images  the steps of the Dockerfiles in a chroot (root, mmdebstrap)
## make soak        what takes 40 minutes: schedules and leases in real time, many cancels
## make installcheck  SQL and isolation tests against a running server
## make check-versions  the extension's SQL and isolation tests on PostgreSQL 16, 17 and 18
## make interop     published gRPC clients and tools against a proxy over two shards
## make lint        clang-tidy, cppcheck, format, layers, banned names
## make bench       measure against pgbench on the same cluster
## make asan        programs, unit and client tests under the sanitizers
## make clean       remove everything built, and .wiggle

clean:
	rm -rf build wiggle.so regress/out regress/out_iso tmp_check
	@scripts/state remove

endif
