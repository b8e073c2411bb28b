/*
 * transition.c
 *	  The transition table: one const array that SQL can print.
 */
#include "transition.h"

#include <stddef.h>
#include <string.h>

const WigTransition wig_transitions[] = {
	{false, WIG_INSTANCE_NONE, WIG_INSTANCE_RUNNING, "started"},
	{false, WIG_INSTANCE_RUNNING, WIG_INSTANCE_COMPLETED, "reached a successful end"},
	{false, WIG_INSTANCE_RUNNING, WIG_INSTANCE_FAILED, "failed with nothing to undo"},
	{false, WIG_INSTANCE_RUNNING, WIG_INSTANCE_CANCELLED, "cancelled"},
	{false, WIG_INSTANCE_RUNNING, WIG_INSTANCE_COMPENSATING, "failed with steps to undo"},
	{false, WIG_INSTANCE_COMPENSATING, WIG_INSTANCE_COMPENSATED, "every step undone"},
	{false, WIG_INSTANCE_COMPENSATING, WIG_INSTANCE_COMPENSATION_FAILED, "a compensator failed for good"},

	{true, WIG_TOKEN_NONE, WIG_TOKEN_READY, "minted at a step"},
	{true, WIG_TOKEN_NONE, WIG_TOKEN_RUNNING, "minted already leased"},
	{true, WIG_TOKEN_NONE, WIG_TOKEN_WAITING, "minted at a sleep"},
	{true, WIG_TOKEN_NONE, WIG_TOKEN_AWAITING, "minted at a signal or a sub-workflow"},
	{true, WIG_TOKEN_NONE, WIG_TOKEN_JOINED, "minted at a join"},
	{true, WIG_TOKEN_NONE, WIG_TOKEN_DONE, "passed a node that needs nobody"},
	{true, WIG_TOKEN_READY, WIG_TOKEN_RUNNING, "claimed"},
	{true, WIG_TOKEN_READY, WIG_TOKEN_CANCELLED, "instance ended"},
	{true, WIG_TOKEN_RUNNING, WIG_TOKEN_DONE, "reported"},
	{true, WIG_TOKEN_RUNNING, WIG_TOKEN_READY, "released, or to be tried again soon"},
	{true, WIG_TOKEN_RUNNING, WIG_TOKEN_WAITING, "retry parked"},
	{true, WIG_TOKEN_RUNNING, WIG_TOKEN_FAILED, "attempts exhausted, or a permanent failure"},
	{true, WIG_TOKEN_RUNNING, WIG_TOKEN_CANCELLED, "instance ended"},
	{true, WIG_TOKEN_WAITING, WIG_TOKEN_READY, "retry due"},
	{true, WIG_TOKEN_WAITING, WIG_TOKEN_DONE, "sleep over"},
	{true, WIG_TOKEN_WAITING, WIG_TOKEN_CANCELLED, "instance ended"},
	{true, WIG_TOKEN_AWAITING, WIG_TOKEN_DONE, "signalled, escalated, or sub-workflow completed"},
	{true, WIG_TOKEN_AWAITING, WIG_TOKEN_FAILED, "timed out, or sub-workflow failed"},
	{true, WIG_TOKEN_AWAITING, WIG_TOKEN_CANCELLED, "instance ended"},
	{true, WIG_TOKEN_JOINED, WIG_TOKEN_DONE, "join complete"},
	{true, WIG_TOKEN_JOINED, WIG_TOKEN_CANCELLED, "instance ended"},
};

const int	wig_ntransitions = sizeof(wig_transitions) / sizeof(wig_transitions[0]);

static const struct
{
	const char *name;
	char		letter;
}			token_statuses[WIG_NTOKEN_STATUSES] = {
	[WIG_TOKEN_NONE] = {"", '\0'},
	[WIG_TOKEN_READY] = {"READY", 'R'},
	[WIG_TOKEN_RUNNING] = {"RUNNING", 'R'},
	[WIG_TOKEN_WAITING] = {"WAITING", 'W'},
	[WIG_TOKEN_AWAITING] = {"AWAITING", 'A'},
	[WIG_TOKEN_JOINED] = {"JOINED", 'J'},
	[WIG_TOKEN_DONE] = {"DONE", 'D'},
	[WIG_TOKEN_FAILED] = {"FAILED", 'F'},
	[WIG_TOKEN_CANCELLED] = {"CANCELLED", 'C'},
};

static const char *const instance_statuses[WIG_NINSTANCE_STATUSES] = {
	[WIG_INSTANCE_NONE] = "",
	[WIG_INSTANCE_RUNNING] = "RUNNING",
	[WIG_INSTANCE_COMPLETED] = "COMPLETED",
	[WIG_INSTANCE_FAILED] = "FAILED",
	[WIG_INSTANCE_CANCELLED] = "CANCELLED",
	[WIG_INSTANCE_COMPENSATING] = "COMPENSATING",
	[WIG_INSTANCE_COMPENSATED] = "COMPENSATED",
	[WIG_INSTANCE_COMPENSATION_FAILED] = "COMPENSATION_FAILED",
};

const char *
wig_token_status_name(WigTokenStatus status)
{
	return token_statuses[status].name;
}

const char *
wig_instance_status_name(WigInstanceStatus status)
{
	return instance_statuses[status];
}

bool
wig_instance_status_from_name(const char *name, WigInstanceStatus *status)
{
	for (int i = WIG_INSTANCE_RUNNING; i < WIG_NINSTANCE_STATUSES; i++)
		if (strcmp(instance_statuses[i], name) == 0)
		{
			*status = (WigInstanceStatus) i;
			return true;
		}
	return false;
}

static bool
listed(bool of_token, int from, int to)
{
	for (int i = 0; i < wig_ntransitions; i++)
		if (wig_transitions[i].of_token == of_token &&
			wig_transitions[i].from == from && wig_transitions[i].to == to)
			return true;
	return false;
}

bool
wig_token_may(WigTokenStatus from, WigTokenStatus to)
{
	return listed(true, from, to);
}

bool
wig_instance_may(WigInstanceStatus from, WigInstanceStatus to)
{
	return listed(false, from, to);
}

char
wig_token_status_letter(WigTokenStatus status)
{
	return token_statuses[status].letter;
}

bool
wig_token_letter_live(char letter)
{
	return letter == 'R' || letter == 'W' || letter == 'A' || letter == 'J';
}

WigTokenStatus
wig_token_status_of_letter(char letter)
{
	for (int i = WIG_TOKEN_READY; i < WIG_NTOKEN_STATUSES; i++)
		if (token_statuses[i].letter == letter)
			return (WigTokenStatus) i;
	return WIG_TOKEN_NONE;
}

bool
wig_instance_terminal(WigInstanceStatus status)
{
	return status != WIG_INSTANCE_RUNNING && status != WIG_INSTANCE_COMPENSATING;
}
