/*
 * Writes stamped sectors to a disk and reports the result of each write; reads them back and reports the content.
 *
 * The agent starts it with the disk already open and checked to be the right one (--fd); it opens nothing itself.
 * Records go to standard output: ../../oracle/ledger.py and ../../oracle/readback.py specify them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stamp.h"
#include "writer.h"

volatile int stop_signals;
uint32_t crc_table[8][256];

void crc_init(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
		crc_table[0][i] = crc;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int t = 1; t < 8; t++)
			crc_table[t][i] = crc_table[t - 1][i] >> 8 ^ crc_table[0][crc_table[t - 1][i] & 0xff];
}

void fail(const char *what, int error)
{
	fprintf(stderr, "%s: %s\n", what, strerror(error));
	exit(2);
}

/* --- records ----------------------------------------------------------------------------------------------- */

static uint8_t pending[1 << 16];
static size_t pending_size;

void out_flush(void)
{
	size_t done = 0;

	while (done < pending_size) {
		ssize_t n = write(1, pending + done, pending_size - done);

		if (n < 0 && errno != EINTR)
			fail("standard output", errno); /* the record is no longer kept, so nothing may be written */
		if (n > 0)
			done += (size_t)n;
		else if (stop_signals > 1)
			_exit(3);
	}
	pending_size = 0;
}

void out(const void *record, size_t size)
{
	if (pending_size + size > sizeof(pending))
		out_flush();
	memcpy(pending + pending_size, record, size);
	pending_size += size;
}

/* --- Linux AIO --------------------------------------------------------------------------------------------- */

long aio_setup(unsigned int depth, aio_context_t *context)
{
	return syscall(SYS_io_setup, depth, context) < 0 ? -errno : 0;
}

long aio_submit(aio_context_t context, long count, struct iocb **list)
{
	long n = syscall(SYS_io_submit, context, count, list);

	return n < 0 ? -errno : n;
}

long aio_wait(aio_context_t context, long most, struct io_event *events, int milliseconds)
{
	struct timespec t = { milliseconds / 1000, milliseconds % 1000 * 1000000L };
	long n = syscall(SYS_io_getevents, context, 1L, most, events, &t);

	return n < 0 ? -errno : n;
}

uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint32_t logical_block(int fd)
{
	int bytes = SECTOR;

	if (ioctl(fd, BLKSSZGET, &bytes) || bytes < SECTOR)
		return SECTOR; /* a file, in tests */
	return (uint32_t)bytes;
}

void *buffer_of(size_t size)
{
	void *made;

	if (posix_memalign(&made, 4096, size))
		fail("memory for buffers", ENOMEM);
	return made;
}

/* --- options ----------------------------------------------------------------------------------------------- */

static void usage(const char *why, const char *what)
{
	fprintf(stderr, "%s %s\n", why, what);
	exit(2);
}

static uint64_t number_of(const char *text, int base)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, base);
	if (errno || end == text || *end)
		usage("not a number:", text);
	return value;
}

static void parse_extents(struct options *o, char *text)
{
	for (char *part = strtok(text, ","); part; part = strtok(NULL, ",")) {
		char *colon = strchr(part, ':');

		if (!colon || o->extent_count == MAX_EXTENTS)
			usage("not an extent FIRST:SECTORS, or too many of them:", part);
		*colon = 0;
		o->extents[o->extent_count].first = number_of(part, 10);
		o->extents[o->extent_count].sectors = number_of(colon + 1, 10);
		o->sectors += o->extents[o->extent_count++].sectors;
	}
}

static void parse_option(struct options *o, const char *name, char *value)
{
	static const struct {
		const char *name;
		size_t at;
	} numbers[] = {
		{ "--session", offsetof(struct options, session) },
		{ "--block", offsetof(struct options, block) },
		{ "--depth", offsetof(struct options, depth) },
		{ "--flush-writes", offsetof(struct options, flush_writes) },
		{ "--flush-ms", offsetof(struct options, flush_ms) },
		{ "--fua", offsetof(struct options, fua) },
		{ "--fill", offsetof(struct options, fill) },
		{ "--raw", offsetof(struct options, raw) },
		{ "--rest", offsetof(struct options, rest) },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		if (!strcmp(name, numbers[i].name)) {
			*(uint32_t *)((char *)o + numbers[i].at) = (uint32_t)number_of(value, 10);
			return;
		}
	}
	if (!strcmp(name, "--fd"))
		o->fd = (int)number_of(value, 10);
	else if (!strcmp(name, "--run"))
		o->run = number_of(value, 16);
	else if (!strcmp(name, "--device"))
		o->device = number_of(value, 16);
	else if (!strcmp(name, "--seed"))
		o->seed = number_of(value, 10);
	else if (!strcmp(name, "--blocks"))
		o->blocks = number_of(value, 10);
	else if (!strcmp(name, "--extents"))
		parse_extents(o, value);
	else if (!strcmp(name, "--order"))
		o->order = !strcmp(value, "random") ? RANDOM : !strcmp(value, "hot") ? HOT : SEQUENTIAL;
	else
		usage("unknown option:", name);
}

static void check(const struct options *o, bool writing)
{
	if (o->fd < 0 || !o->extent_count || !o->block || !o->depth || o->depth > MAX_DEPTH)
		usage("missing or out of range:", "--fd, --extents, --block, --depth (256 at most)");
	for (unsigned int i = 0; writing && i < o->extent_count; i++)
		if (!o->extents[i].sectors || o->extents[i].sectors % o->block)
			usage("each extent must consist of whole blocks", "(--extents, --block)");
	if (o->fill % o->block)
		usage("--fill must be a multiple of --block", "");
	if (o->rest % o->block || (o->rest && o->rest >= o->sectors))
		usage("--rest must be a multiple of --block and less than the extents", "");
}

static void end(int number)
{
	(void)number;
	stop_signals++;
}

int main(int argc, char **argv)
{
	struct options o = { .fd = -1, .seed = 1, .block = 8, .depth = 16, .raw = 256 };
	bool writing = argc > 1 && !strcmp(argv[1], "write");
	struct sigaction action = { .sa_handler = end }; /* no SA_RESTART: a signal must interrupt a wait */
	int flags;

	if (argc < 2 || argc % 2 || (!writing && strcmp(argv[1], "read")))
		usage("usage:", "write|read --OPTION VALUE ...");
	for (int i = 2; i + 1 < argc; i += 2)
		parse_option(&o, argv[i], argv[i + 1]);
	check(&o, writing);
	flags = fcntl(o.fd, F_GETFL);
	/* Disks always have O_DIRECT. A file system without it is accepted for tests of this program. */
	if (flags < 0 || (fcntl(o.fd, F_SETFL, flags | O_DIRECT) < 0 && errno != EINVAL))
		fail("O_DIRECT", errno);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	crc_init();
	return writing ? write_session(&o) : read_back(&o);
}
