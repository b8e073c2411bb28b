/*
 * main.c
 *	  The wiggle command: find the command, sort its arguments, run it.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"
#include "session.h"

#define DEFAULT_SERVER "localhost:8080"

static const struct option global_options[] = {
	{"server", 's', "HOST:PORT", "the proxy to talk to; default $WIGGLE_URL, else " DEFAULT_SERVER},
	SECURITY_OPTIONS,
	{"json", 0, NULL, "print JSON for programs instead of text for people"},
	{"help", 'h', NULL, "say what there is to say and end"},
	{NULL, 0, NULL, NULL}
};

static enum exit_status run_version(struct session *session, const struct arguments *args);

static const struct option no_options[] = {{NULL, 0, NULL, NULL}};

/* Without a command. */
static const struct option bare_options[] = {
	{"version", 0, NULL, "print the version of this command and end"},
	{NULL, 0, NULL, NULL}
};

static const struct command command_version = {
	.name = "version",
	.words = "",
	.summary = "print the version of this command",
	.options = no_options,
	.run = run_version
};

static const struct command *const commands[] = {
	&command_validate,
	&command_register,
	&command_start,
	&command_get,
	&command_list,
	&command_signal,
	&command_cancel,
	&command_work,
	&command_schedule,
	&command_events,
	&command_stats,
	&command_backlog,
	&command_cluster,
	&command_auth,
	&command_shards,
	&command_topology,
	&command_config,
	&command_version
};

#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

static enum exit_status
run_version(struct session *session, const struct arguments *args)
{
	(void) args;
	if (session->json)
		printf("{\"version\":\"%s\"}\n", WIGGLE_VERSION);
	else
		printf("wiggle %s\n", WIGGLE_VERSION);
	return EXIT_DONE;
}

/* ---- help ---- */

static void
print_options(const struct option *options)
{
	for (; options->name != NULL; options++)
	{
		char		left[64];

		snprintf(left, sizeof(left), "%c%c%s --%s%s%s",
				 options->letter ? '-' : ' ', options->letter ? options->letter : ' ',
				 options->letter ? "," : " ", options->name,
				 options->value == NULL ? "" : " ", options->value == NULL ? "" : options->value);
		if (strlen(left) <= 30)
			printf("  %-30s  %s\n", left, options->help);
		else
			printf("  %s\n  %-30s  %s\n", left, "", options->help);
	}
}

static void
print_help(void)
{
	printf("Usage: wiggle [OPTIONS] COMMAND [ARGUMENTS]\n"
		   "\n"
		   "Durable workflows inside PostgreSQL, from the command line.\n"
		   "\n"
		   "Commands:\n");
	for (size_t i = 0; i < NCOMMANDS; i++)
		printf("  %-10s  %s\n", commands[i]->name, commands[i]->summary);
	printf("\nOptions of every command:\n");
	print_options(global_options);
	printf("\nWithout a command:\n");
	print_options(bare_options);
	printf("\n"
		   "Examples:\n"
		   "  wiggle register order.yaml\n"
		   "  wiggle work -f worker.yaml\n"
		   "  wiggle start order --context '{\"order\": 17}' --wait\n"
		   "  wiggle list --status FAILED\n"
		   "  wiggle get wfi.s0.01m446vf3rya1rekthaps4 --json\n"
		   "\n"
		   "Exit status:\n"
		   "  0  done\n"
		   "  1  the server refused: not found, wrong state, not allowed\n"
		   "  2  wrong usage, or a file that is not valid\n"
		   "  3  no answer from the server, or its database cannot be reached: try again later\n"
		   "  4  the awaited instance ended in another state than COMPLETED, or not in time\n"
		   "  5  work: steps were killed because a second signal asked for it\n"
		   "\n"
		   "Environment:\n"
		   "  WIGGLE_URL                     the proxy, host:port; any scheme:// is ignored\n"
		   "  WIGGLE_API_KEY                 the key that calls present\n"
		   "  WIGGLE_TLS                     true: speak TLS, as --tls\n"
		   "  WIGGLE_TLS_TRUSTSTORE, WIGGLE_TLS_KEYSTORE, WIGGLE_TLS_KEY,\n"
		   "  WIGGLE_TLS_SERVER_NAME         as the options; files are PEM or PKCS#12\n"
		   "  WIGGLE_TLS_KEYSTORE_PASSWORD, WIGGLE_TLS_TRUSTSTORE_PASSWORD\n"
		   "                                 their passwords\n"
		   "  WIGGLE_RPC_MAX_ATTEMPTS        how often a call is made when the server is\n"
		   "                                 unavailable (5)\n"
		   "  WIGGLE_RPC_RETRY_DELAY_MILLIS  the pause before the second one, doubled for each\n"
		   "                                 further one (200)\n"
		   "\n"
		   "\"wiggle COMMAND --help\" says more about a command.\n");
}

static void
print_command_help(const struct command *command)
{
	printf("Usage: wiggle %s%s%s [OPTIONS]\n\n%c%s.\n", command->name,
		   command->words[0] == '\0' ? "" : " ", command->words,
		   command->summary[0] - 'a' + 'A', command->summary + 1);
	if (command->options->name != NULL)
	{
		printf("\nOptions:\n");
		print_options(command->options);
	}
	printf("\nOptions of every command:\n");
	print_options(global_options);
	if (command->details != NULL)
		printf("\n%s", command->details);
}

/* ---- running ---- */

static const struct command *
find_command(const char *name)
{
	for (size_t i = 0; i < NCOMMANDS; i++)
	{
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	}
	return NULL;
}

/* Is it a global option whose value is the next word? */
static bool
takes_value(const char *word)
{
	for (const struct option *o = global_options; o->name != NULL; o++)
	{
		if (o->value == NULL)
			continue;
		if (strncmp(word, "--", 2) == 0 ? strcmp(word + 2, o->name) == 0
			: o->letter != 0 && word[1] == o->letter && word[2] == '\0')
			return true;
	}
	return false;
}

/*
 * Where the command's name stands: the first word that is no option and no
 * global option's value. 0 when there is none.
 */
static int
command_position(int argc, char *const *argv)
{
	for (int i = 1; i < argc; i++)
	{
		if (argv[i][0] != '-')
			return i;
		if (takes_value(argv[i]))
			i++;
	}
	return 0;
}

static enum exit_status
run_command(const struct command *command, const struct arguments *args)
{
	const char *environment = getenv("WIGGLE_URL");
	struct session session = {0};
	const char *problem = NULL;
	struct wig_error err;
	enum exit_status status = EXIT_USAGE;

	session.json = options_has(args, "json");
	session.server = options_value(args, "server");
	if (session.server == NULL)
		session.server = environment != NULL && *environment != '\0' ? environment : DEFAULT_SERVER;
	if (uv_loop_init(&session.loop) != 0)
		return complain_text(EXIT_UNREACHABLE, "cannot set up an event loop");
	if (command->calls && !security_read(args, &session.security, &err))
		complain(EXIT_USAGE, NULL, &err);
	else if (command->calls && (session.client = client_new(&session.loop, session.server, &session.security,
															 &problem)) == NULL)
		complain_text(EXIT_USAGE, "%s, got '%s'", problem, session.server);
	else
		status = command->run(&session, args);
	session_end(&session);
	/* who reads the first lines only has what it wants */
	if (fflush(stdout) != 0 && status == EXIT_DONE && errno != EPIPE)
		return complain_text(EXIT_REFUSED, "cannot write the output");
	return status;
}

int
main(int argc, char **argv)
{
	static struct arguments args;
	const struct command *command;
	struct wig_error err;
	int			at = command_position(argc, argv);

	signal(SIGPIPE, SIG_IGN);
	command = at == 0 ? NULL : find_command(argv[at]);
	if (at != 0 && command == NULL && strcmp(argv[at], "help") != 0)
		return complain_text(EXIT_USAGE, "there is no command '%s'; see wiggle --help", argv[at]);

	/* The name itself is no word of the command. */
	for (int i = at; at != 0 && i > 0; i--)
		argv[i] = argv[i - 1];
	if (at != 0)
	{
		argc--;
		argv++;
	}
	if (!options_parse(command == NULL ? bare_options : command->options, global_options,
					   argc - 1, argv + 1, &args, &err))
		return complain_text(EXIT_USAGE, "%s; see wiggle%s%s --help", err.message,
							 command == NULL ? "" : " ", command == NULL ? "" : command->name);

	if (command == NULL)
	{
		const struct command *subject = args.nwords > 0 ? find_command(args.words[0]) : NULL;
		struct session no_server = {.json = options_has(&args, "json")};

		if (options_has(&args, "version"))
			return run_version(&no_server, &args);
		if (at == 0 && !options_has(&args, "help"))
			return complain_text(EXIT_USAGE, "which command? See wiggle --help");
		if (subject != NULL)
			print_command_help(subject);
		else
			print_help();
		return EXIT_DONE;
	}
	if (options_has(&args, "help"))
	{
		print_command_help(command);
		return EXIT_DONE;
	}
	if (args.nwords < command->min_words || args.nwords > command->max_words)
		return complain_text(EXIT_USAGE, "usage: wiggle %s%s%s [OPTIONS]; see wiggle %s --help",
							 command->name, command->words[0] == '\0' ? "" : " ", command->words,
							 command->name);
	return run_command(command, &args);
}
