/*
 * task.h
 *	  One leased task from its arrival to its report.
 *
 * A task runs its command, keeps its lease alive meanwhile, and reports until the
 * server has given an answer that stands or the lease is surely over. It frees
 * itself and tells its owner.
 */
#ifndef WIGGLE_CLI_TASK_H
#define WIGGLE_CLI_TASK_H

#include "client.h"
#include "session.h"
#include "wiggle.pb-c.h"
#include "worker_config.h"

struct task;

struct task_owner
{
	uv_loop_t  *loop;
	struct client *client;
	const struct worker_config *config;
	void		(*ended) (void *arg, struct task *task);
	void	   *arg;
};

/*
 * Take over an activation (freed by the task). *owner outlives the task. ended may
 * not run before this returns.
 */
extern struct task *task_start(const struct task_owner *owner, PB(TaskActivation) *activation);

/* Kill the command; the failure is reported. */
extern void task_kill(struct task *task);

#endif							/* WIGGLE_CLI_TASK_H */
