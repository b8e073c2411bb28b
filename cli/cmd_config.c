/*
 * cmd_config.c
 *	  wiggle config.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "config.h"
#include "output.h"
#include "placement.h"
#include "session.h"
#include "setting.h"
#include "settings_tls.h"
#include "settings_topology.h"

static enum exit_status run_config(struct session *session, const struct arguments *args);

static const struct option config_options[] = {
	{"check", 0, NULL, "only say whether wiggle-proxy would start with them"},
	{"set", 0, NULL, "only those that are set"},
	{NULL, 0, NULL, NULL}
};

const struct command command_config = {
	.name = "config",
	.words = "",
	.summary = "show wiggle-proxy's settings as this environment gives them",
	.details =
	"Each setting with its value and where it came from. A plain number is in the unit that\n"
	"the name says; secrets are not shown. A setting of the engine that is not set is each\n"
	"database's own.\n"
	"\n"
	"What the start would refuse is refused with the same words, also in the topology and the\n"
	"certificate files that are named; nothing is connected to, and which generation is in force\n"
	"this machine's clock says. WIGGLE_ variables that have no\n"
	"effect are told on standard error. The exit status is 2 when the start would be refused.\n"
	"\n"
	"Examples:\n"
	"  wiggle config --set\n"
	"  env $(cat proxy.env) wiggle config --check\n",
	.options = config_options,
	.run = run_config
};

static void
tell(bool known, const char *text, void *arg)
{
	(void) arg;
	fprintf(stderr, "wiggle: %s%s\n", known ? "" : "warning: ", text);
}

/*
 * What the start looks at beside the values themselves, in its order. It goes by home's clock,
 * which nobody asks here.
 */
static bool
check_files(struct wig_error *err)
{
	SSL_CTX    *context = *config.tls_keystore != '\0' ? settings_tls(err) : NULL;
	struct topology *topology;
	bool		placed;

	SSL_CTX_free(context);
	if (*config.tls_keystore != '\0' && context == NULL)
		return false;
	topology = settings_topology(err);
	placed = topology != NULL && placement_check(topology, (int64_t) time(NULL) * 1000, err);
	topology_free(topology);
	return placed;
}

static const char *
source_of(const struct setting *setting)
{
	if (config_source(setting) != CONFIG_DEFAULT)
		return "environment";
	return setting->guc != NULL ? "database" : "default";
}

static void
print_settings(bool json, bool only_set)
{
	static const char *const headings[] = {"SETTING", "VALUE", "FROM"};
	struct table table;
	struct buf	out = BUF_INIT;

	table_start(&table, 3, headings);
	json_open(&out, NULL, '[');
	for (size_t i = 0; i < nsettings; i++)
	{
		const struct setting *s = &settings[i];
		const char *from = source_of(s);
		bool		theirs = s->guc != NULL && config_source(s) == CONFIG_DEFAULT;
		struct buf	value = BUF_INIT;
		char		name[SETTING_NAME_MAX];
		const char *cells[] = {name, NULL, from};

		if (only_set && config_source(s) == CONFIG_DEFAULT)
			continue;
		setting_variable(s, name);
		if (!theirs)
			config_value(s, &value);
		cells[1] = buf_cstr(&value);
		table_row(&table, cells);
		json_open(&out, NULL, '{');
		json_text(&out, "name", name);
		json_text(&out, "value", theirs ? NULL : buf_cstr(&value));
		json_text(&out, "unit", s->unit);
		json_text(&out, "from", from);
		json_close(&out, '}');
		buf_free(&value);
	}
	json_close(&out, ']');
	if (json)
		print_buf(&out);
	else
		table_print(&table, stdout);
	table_free(&table);
	buf_free(&out);
}

static enum exit_status
run_config(struct session *session, const struct arguments *args)
{
	char	   *const argv[] = {(char *) "wiggle-proxy", NULL};
	struct wig_error err = {.message = ""};
	bool		sound = config_load(1, argv, &err) == CONFIG_RUN;

	config_foreign(tell, NULL);
	if (sound && !options_has(args, "check"))
		print_settings(session->json, options_has(args, "set"));
	if (!sound || !check_files(&err))
		return complain(EXIT_USAGE, NULL, &err);
	if (options_has(args, "check"))
		printf(session->json ? "{\"sound\":true}\n" : "wiggle-proxy would start with these settings\n");
	return EXIT_DONE;
}
