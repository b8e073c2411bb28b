/*
 * step.c
 *	  Child processes of the worker.
 */
#define _GNU_SOURCE				/* memfd_create */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "log.h"
#include "step.h"

#define GRACE_MS			5000	/* between asking a group to end and killing it */
#define LAST_WORDS_BYTES	1000
#define READ_BYTES			16384

enum pipe_index
{
	PIPE_INPUT,
	PIPE_OUTPUT,
	PIPE_ERRORS,
	NPIPES,
	BASE_FILE = NPIPES,			/* descriptor 3, no pipe */
	NSTREAMS
};

struct step
{
	uv_process_t process;
	uv_pipe_t	pipes[NPIPES];
	uv_timer_t	timer;			/* the timeout, then the grace period */
	uv_write_t	writer;
	int			handles;		/* that libuv still knows */
	step_done_fn done;
	void	   *arg;
	char	   *label;
	char	   *input;
	struct buf	output;
	struct buf	line;			/* of standard error, not yet ended */
	char		last_words[LAST_WORDS_BYTES + 1];
	char		chunk[READ_BYTES];
	bool		running;
	bool		asked_to_end;
	bool		process_open;
	bool		timer_open;
	bool		pipe_open[NPIPES];
	struct step_result result;
};

static void
free_step(struct step *step)
{
	buf_free(&step->output);
	buf_free(&step->line);
	free(step->label);
	free(step->input);
	free(step);
}

static void
handle_closed(uv_handle_t *handle)
{
	struct step *step = handle->data;

	if (--step->handles > 0)
		return;
	step->result.output = (const char *) step->output.data;
	step->result.output_len = step->output.len;
	step->result.last_words = step->last_words;
	step->done(step->arg, &step->result);
	free_step(step);
}

/* The timer goes last: when the process has ended and its pipes are read. */
static void
close_timer_when_done(struct step *step)
{
	if (!step->timer_open || step->running ||
		step->pipe_open[PIPE_OUTPUT] || step->pipe_open[PIPE_ERRORS])
		return;
	step->timer_open = false;
	uv_close((uv_handle_t *) &step->timer, handle_closed);
}

static void
close_pipe(struct step *step, enum pipe_index index)
{
	if (!step->pipe_open[index])
		return;
	step->pipe_open[index] = false;
	uv_close((uv_handle_t *) &step->pipes[index], handle_closed);
	close_timer_when_done(step);
}

/* Signal the whole group; true when anybody is left in it. */
static bool
signal_group(const struct step *step, int signal)
{
	return step->process.pid > 0 && kill(-step->process.pid, signal) == 0;
}

static void
grace_over(uv_timer_t *timer)
{
	struct step *step = timer->data;

	signal_group(step, SIGKILL);
}

static void
ask_to_end(struct step *step)
{
	if (step->asked_to_end || !step->running)
		return;
	step->asked_to_end = true;
	signal_group(step, SIGTERM);
	uv_timer_start(&step->timer, grace_over, GRACE_MS, 0);
}

static void
time_over(uv_timer_t *timer)
{
	struct step *step = timer->data;

	step->result.timed_out = true;
	ask_to_end(step);
}

void
step_kill(struct step *step)
{
	if (!step->running)
		return;
	step->result.killed = true;
	ask_to_end(step);
}

/* ---- output ---- */

static void
give_room(uv_handle_t *handle, size_t suggested, uv_buf_t *room)
{
	struct step *step = handle->data;

	(void) suggested;
	*room = uv_buf_init(step->chunk, sizeof(step->chunk));
}

static void
take_output(uv_stream_t *stream, ssize_t n, const uv_buf_t *room)
{
	struct step *step = stream->data;

	if (n == 0)
		return;
	if (n < 0)
	{
		close_pipe(step, PIPE_OUTPUT);
		return;
	}
	if (step->output.len + (size_t) n > STEP_MAX_OUTPUT)
	{
		step->result.output_too_large = true;
		close_pipe(step, PIPE_OUTPUT);
		ask_to_end(step);
		return;
	}
	buf_append(&step->output, room->base, (size_t) n);
}

/* One line of standard error is complete. */
static void
end_line(struct step *step)
{
	const char *text = buf_cstr(&step->line);

	if (text[strspn(text, " \t\r")] != '\0')
	{
		size_t		len = step->line.len < LAST_WORDS_BYTES ? step->line.len : LAST_WORDS_BYTES;

		memcpy(step->last_words, text, len);
		step->last_words[len] = '\0';
		log_info(step->label, "%s", text);
	}
	buf_reset(&step->line);
}

static void
take_errors(uv_stream_t *stream, ssize_t n, const uv_buf_t *room)
{
	struct step *step = stream->data;

	for (ssize_t i = 0; i < n; i++)
	{
		if (room->base[i] == '\n' || step->line.len >= LAST_WORDS_BYTES)
			end_line(step);
		if (room->base[i] != '\n' && room->base[i] != '\0')
			buf_byte(&step->line, (uint8_t) room->base[i]);
	}
	if (n < 0)
	{
		end_line(step);
		close_pipe(step, PIPE_ERRORS);
	}
}

static void
input_written(uv_write_t *writer, int status)
{
	struct step *step = writer->data;

	/* A command need not read its input. */
	(void) status;
	close_pipe(step, PIPE_INPUT);
}

static void
output_over(uv_timer_t *timer)
{
	struct step *step = timer->data;

	close_pipe(step, PIPE_OUTPUT);
	close_pipe(step, PIPE_ERRORS);
}

static void
process_ended(uv_process_t *process, int64_t exit_status, int term_signal)
{
	struct step *step = process->data;

	step->running = false;
	step->result.exit_status = (int) exit_status;
	step->result.term_signal = term_signal;

	/*
	 * Whatever it left behind holds its pipes, and nobody waits for it. What went
	 * into a session of its own cannot be reached; its output is not waited for long.
	 */
	signal_group(step, SIGKILL);
	close_pipe(step, PIPE_INPUT);
	uv_timer_start(&step->timer, output_over, GRACE_MS, 0);
	uv_close((uv_handle_t *) &step->process, handle_closed);
	close_timer_when_done(step);
}

/* ---- start ---- */

/*
 * A pipe between us and the child: ours is step->pipes[index], the child's end is
 * returned, or a negative error. Real pipes, not the socket pairs that libuv would
 * make: a command may open /dev/stdin and /dev/stderr by name.
 */
static int
make_pipe(struct step *step, uv_loop_t *loop, enum pipe_index index)
{
	bool		we_write = index == PIPE_INPUT;
	uv_file		ends[2];
	int			rc = uv_pipe(ends, we_write ? 0 : UV_NONBLOCK_PIPE, we_write ? UV_NONBLOCK_PIPE : 0);

	if (rc != 0)
		return rc;
	uv_pipe_init(loop, &step->pipes[index], 0);
	step->pipes[index].data = step;
	step->pipe_open[index] = true;
	step->handles++;
	rc = uv_pipe_open(&step->pipes[index], ends[we_write ? 1 : 0]);
	if (rc == 0)
		return ends[we_write ? 0 : 1];
	close(ends[0]);
	close(ends[1]);
	return rc;
}

/*
 * A file in memory that holds the base: its descriptor or a negative error. Unlike a
 * pipe it need not be read, may be read twice, and is gone with its last reader.
 */
static int
make_base(const struct step_setup *setup)
{
	size_t		done = 0;
	int			fd = memfd_create("wiggle-base-context", MFD_CLOEXEC);

	while (fd >= 0 && done < setup->base_len)
	{
		ssize_t		n = write(fd, setup->base + done, setup->base_len - done);

		if (n < 0 && errno != EINTR)
		{
			int			problem = errno;

			close(fd);
			return -problem;
		}
		done += n > 0 ? (size_t) n : 0;
	}
	if (fd < 0 || lseek(fd, 0, SEEK_SET) != 0)
		return -errno;
	return fd;
}

/* The child's end of a stream, or a negative error. */
static int
make_stream(struct step *step, uv_loop_t *loop, const struct step_setup *setup, int index)
{
	return index == BASE_FILE ? make_base(setup) : make_pipe(step, loop, (enum pipe_index) index);
}

static int
spawn(struct step *step, uv_loop_t *loop, const struct step_setup *setup)
{
	uv_stdio_container_t stdio[NSTREAMS];
	int			nstreams = setup->base == NULL ? NPIPES : NSTREAMS;
	uv_process_options_t options = {0};
	int			rc = 0;
	int			made = 0;

	uv_timer_init(loop, &step->timer);
	step->timer.data = step;
	step->timer_open = true;
	step->handles++;
	step->process.data = step;
	for (; made < nstreams; made++)
	{
		rc = make_stream(step, loop, setup, made);
		if (rc < 0)
			break;
		stdio[made].flags = UV_INHERIT_FD;
		stdio[made].data.fd = rc;
	}
	if (made == nstreams)
	{
		options.file = setup->argv[0];
		options.args = setup->argv;
		options.env = setup->environment;
		options.cwd = setup->dir;
		options.flags = UV_PROCESS_DETACHED;
		options.stdio = stdio;
		options.stdio_count = nstreams;
		options.exit_cb = process_ended;
		step->process_open = true;
		step->handles++;
		rc = uv_spawn(loop, &step->process, &options);
	}
	while (made > 0)
		close(stdio[--made].data.fd);
	return rc;
}

static void
write_input(struct step *step, size_t len)
{
	uv_buf_t	input = uv_buf_init(step->input, (unsigned) len);

	step->writer.data = step;
	if (len == 0 || uv_write(&step->writer, (uv_stream_t *) &step->pipes[PIPE_INPUT], &input, 1,
							 input_written) != 0)
		close_pipe(step, PIPE_INPUT);
}

struct step *
step_start(uv_loop_t *loop, const struct step_setup *setup, step_done_fn done, void *arg)
{
	struct step *step = xcalloc(1, sizeof(*step));
	int			rc;

	step->done = done;
	step->arg = arg;
	step->label = xstrdup(setup->label);
	step->input = xmalloc(setup->input_len + 1);
	memcpy(step->input, setup->input, setup->input_len);
	rc = spawn(step, loop, setup);
	if (rc != 0)
	{
		step->result.spawn_error = uv_strerror(rc);
		step->result.program = setup->argv[0];
		if (step->process_open)
			uv_close((uv_handle_t *) &step->process, handle_closed);
		for (int i = 0; i < NPIPES; i++)
			close_pipe(step, (enum pipe_index) i);
		close_timer_when_done(step);
		return step;
	}
	step->running = true;
	if (setup->timeout_ms > 0)
		uv_timer_start(&step->timer, time_over, (uint64_t) setup->timeout_ms, 0);
	write_input(step, setup->input_len);
	uv_read_start((uv_stream_t *) &step->pipes[PIPE_OUTPUT], give_room, take_output);
	uv_read_start((uv_stream_t *) &step->pipes[PIPE_ERRORS], give_room, take_errors);
	return step;
}
