# pg_wiggle: the extension (PGXS), wiggle-proxy and the wiggle command.
#
#   make            build everything           make demo    see it work
#   make install    extension and programs     make check   run every test
#   make help       the whole list
#
# Written files go to build/ and .wiggle/, and wiggle.so to this folder.

PG_CONFIG ?= pg_config
ROOT := $(CURDIR)
export PG_CONFIG

# Without server headers only "deps", "demo" (which gets them first), "help"
# and "clean" can work.
PGXS := $(wildcard $(shell $(PG_CONFIG) --pgxs 2>/dev/null))

all: programs

EXTENSION = extension/wiggle
DATA = $(wildcard extension/wiggle--*.sql)
MODULE_big = wiggle

EXT_SRCS = $(wildcard extension/*.c)
CORE_SRCS = $(filter-out core/flow_yaml.c,$(wildcard core/*.c))
OBJS = $(patsubst %.c,build/obj/pg/%.o,$(EXT_SRCS) $(CORE_SRCS))

# The server's own headers are a system's: their warnings are not ours.
PG_CPPFLAGS = -I$(ROOT)/extension -I$(ROOT)/core -isystem $(shell $(PG_CONFIG) --includedir-server)
PG_CFLAGS = -Wextra -Wno-declaration-after-statement -Werror
SHLIB_LINK = -ljansson -lcrypto
EXTRA_CLEAN = build
override with_llvm := no

ifneq ($(PGXS),)
include $(PGXS)
-include $(OBJS:.o=.d)

build/obj/pg/%.o: %.c
	@mkdir -p $(@D)
	$(COMPILE.c) -MMD -MP -o $@ $<
else
all install check-sql check-isolation check-tap:
	@echo 'No PostgreSQL server headers found (pg_config: $(PG_CONFIG)). Run: make deps' >&2
	@exit 1
clean:
	rm -rf build
endif

# ---------------------------------------------------------------- programs

PROGRAMS = $(if $(wildcard proxy/*.c),proxy) $(if $(wildcard cli/*.c),cli)

.PHONY: programs core proxy cli
programs: $(PROGRAMS)

core:
	+$(MAKE) -C core ROOT=$(ROOT)
proxy: core
	+$(MAKE) -C proxy ROOT=$(ROOT)
cli: core proxy
	+$(MAKE) -C cli ROOT=$(ROOT)
