/* Writing: a queue of writes and flushes, and their ledger. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/fs.h>

#include "stamp.h"
#include "writer.h"

enum { BEGUN = 1, ISSUED, COMPLETED, FLUSH_SUBMITTED, FLUSH_COMPLETED, ENDED };
enum { ASKED, ERROR, DONE, STUCK };
enum { FLAG_FUA = 1, FLAG_FILL = 2 };

#define LATEST 200 /* the longest wait in ms: a signal may arrive just before it begins */
#define FILL_DEPTH 4

struct begun {
	uint8_t kind, version;
	uint16_t zero;
	uint32_t session;
	uint64_t run, device, begun_ns, sectors;
	uint32_t block, depth;
	uint32_t logical;
	uint8_t rest[12];
};
struct issued {
	uint8_t kind, flags;
	uint16_t zero;
	uint32_t sectors, number;
	uint64_t sector;
	uint32_t time;
} __attribute__((packed));
struct brief {
	uint8_t kind, zero;
	uint16_t error;
	uint32_t number, time, bytes;
};
struct ended {
	uint8_t kind, reason;
	uint16_t error;
	uint32_t issued, completed, flushes, flushed, time;
	uint8_t rest[8];
};

struct slot {
	struct iocb iocb;
	uint8_t *buffer;
	uint64_t block; /* index of the first block */
	uint32_t number, sectors;
	bool busy;
};

struct session {
	const struct options *o;
	aio_context_t aio;
	struct slot slots[MAX_DEPTH];
	struct iocb flush;
	struct iocb *batch[MAX_DEPTH + 1];
	long batched;
	uint8_t *in_flight; /* one byte per block */
	uint64_t blocks, moving; /* in all, and of these at the beginning those that are written after the fill */
	uint64_t cursor, random, begun, flush_at;
	uint32_t issued, completed, flushes, flushed, since_flush, writing;
	bool flushing, filling;
	int error;
};

static uint32_t time_of(const struct session *s)
{
	return (uint32_t)(now_us() - s->begun);
}

/* --- where to write next ------------------------------------------------------------------------------------ */

static uint64_t sector_of(const struct options *o, uint64_t block)
{
	uint64_t sector = block * o->block;

	for (unsigned int i = 0; i < o->extent_count; i++) {
		if (sector < o->extents[i].sectors)
			return o->extents[i].first + sector;
		sector -= o->extents[i].sectors;
	}
	return 0;
}

static uint64_t draw(struct session *s, uint64_t below)
{
	s->random = stamp_next(s->random);
	return (s->random >> 11) % below;
}

/* A block without a write in flight, or -1. Two writes to one place at once have no order that could be judged. */
static int64_t choose(struct session *s)
{
	uint64_t hot = s->moving / 10 ? s->moving / 10 : 1;

	if (s->o->order == SEQUENTIAL) {
		uint64_t next = s->cursor % s->moving;

		if (s->in_flight[next])
			return -1;
		s->cursor++;
		return (int64_t)next;
	}
	for (int tries = 0; tries < 16; tries++) {
		uint64_t next = draw(s, s->o->order == HOT && draw(s, 10) ? hot : s->moving);

		if (!s->in_flight[next])
			return (int64_t)next;
	}
	return -1;
}

/* The number of sectors that a fill may write from a block on: up to --fill, within the extent. */
static uint32_t fill_length(const struct options *o, uint64_t block)
{
	uint64_t sector = block * o->block;

	for (unsigned int i = 0; i < o->extent_count; i++) {
		if (sector < o->extents[i].sectors) {
			uint64_t left = o->extents[i].sectors - sector;

			return left < o->fill ? (uint32_t)left : o->fill;
		}
		sector -= o->extents[i].sectors;
	}
	return 0;
}

/* --- issuing ------------------------------------------------------------------------------------------------ */

static void prepare(struct session *s, struct slot *slot, uint64_t block, uint32_t sectors)
{
	const struct options *o = s->o;
	uint64_t first = sector_of(o, block);
	bool fua = !s->filling && o->fua && draw(s, 100) < o->fua;
	struct issued record = { ISSUED, (uint8_t)((fua ? FLAG_FUA : 0) | (s->filling ? FLAG_FILL : 0)), 0, sectors,
				 ++s->issued, first, 0 };
	struct stamp stamp = { MAGIC, o->run, o->device, first, (uint64_t)o->session << 32 | s->issued, 0, sectors };

	for (; stamp.index < sectors; stamp.index++, stamp.sector++)
		stamp_write(slot->buffer + (size_t)stamp.index * SECTOR, &stamp);
	slot->block = block;
	slot->number = s->issued;
	slot->sectors = sectors;
	slot->busy = true;
	memset(s->in_flight + block, 1, sectors / o->block);
	memset(&slot->iocb, 0, sizeof(slot->iocb));
	slot->iocb.aio_data = (uintptr_t)slot;
	slot->iocb.aio_lio_opcode = IOCB_CMD_PWRITE;
	slot->iocb.aio_fildes = (uint32_t)o->fd;
	slot->iocb.aio_buf = (uintptr_t)slot->buffer;
	slot->iocb.aio_nbytes = (uint64_t)sectors * SECTOR;
	slot->iocb.aio_offset = (int64_t)(first * SECTOR);
	slot->iocb.aio_rw_flags = fua ? RWF_DSYNC : 0;
	record.time = time_of(s);
	out(&record, sizeof(record));
	s->batch[s->batched++] = &slot->iocb;
	s->writing++;
}

static bool wants_more(const struct session *s)
{
	if (s->error || stop_signals)
		return false;
	if (s->filling)
		return s->cursor < s->blocks;
	return !s->o->blocks || s->issued < s->o->blocks;
}

static void issue_writes(struct session *s)
{
	uint32_t depth = s->filling && s->o->depth > FILL_DEPTH ? FILL_DEPTH : s->o->depth;

	for (uint32_t i = 0; i < depth && wants_more(s); i++) {
		struct slot *slot = &s->slots[i];
		int64_t block;

		if (slot->busy)
			continue;
		if (s->filling) {
			uint32_t sectors = fill_length(s->o, s->cursor);

			prepare(s, slot, s->cursor, sectors);
			s->cursor += sectors / s->o->block;
			continue;
		}
		block = choose(s);
		if (block < 0)
			return;
		prepare(s, slot, (uint64_t)block, s->o->block);
	}
}

/* IOCB_CMD_FDSYNC: a worker of the kernel flushes the disk (fs/aio.c, since Linux 4.18). */
static void issue_flush(struct session *s)
{
	struct brief record = { FLUSH_SUBMITTED, 0, 0, ++s->flushes, time_of(s), 0 };

	memset(&s->flush, 0, sizeof(s->flush));
	s->flush.aio_lio_opcode = IOCB_CMD_FDSYNC;
	s->flush.aio_fildes = (uint32_t)s->o->fd;
	s->flushing = true;
	s->since_flush = 0;
	s->flush_at = now_us() + (uint64_t)s->o->flush_ms * 1000;
	out(&record, sizeof(record));
	s->batch[s->batched++] = &s->flush;
}

static bool flush_due(const struct session *s)
{
	const struct options *o = s->o;

	if (s->flushing || s->filling || s->error || stop_signals || !s->since_flush)
		return false;
	return (o->flush_writes && s->since_flush >= o->flush_writes) || (o->flush_ms && now_us() >= s->flush_at);
}

/* --- completions -------------------------------------------------------------------------------------------- */

static void completed(struct session *s, struct iocb *iocb, int64_t result)
{
	struct slot *slot = (struct slot *)(uintptr_t)iocb->aio_data;
	int error = result < 0 ? (int)-result : 0;
	struct brief record = { FLUSH_COMPLETED, 0, 0, s->flushes, time_of(s), 0 };

	if (slot) {
		if (!error && result != (int64_t)slot->sectors * SECTOR)
			error = EIO; /* a short write: the disk has shrunk or is disappearing */
		record.kind = COMPLETED;
		record.number = slot->number;
		record.bytes = result > 0 ? (uint32_t)result : 0;
		slot->busy = false;
		memset(s->in_flight + slot->block, 0, slot->sectors / s->o->block);
		s->completed++;
		s->writing--;
		s->since_flush++;
	} else {
		s->flushing = false;
		s->flushed++;
	}
	record.error = (uint16_t)error;
	if (error && !s->error)
		s->error = error;
	out(&record, sizeof(record));
}

static void submit(struct session *s)
{
	long done = 0;

	/* The record goes first, so that every issued write is known even if nothing after it is. */
	out_flush();
	while (done < s->batched) {
		long n = aio_submit(s->aio, s->batched - done, s->batch + done);

		if (n > 0) {
			done += n;
		} else if (n != -EAGAIN && n != -EINTR) {
			completed(s, s->batch[done++], n); /* the kernel refused it: the disk is gone */
		} else if (n == -EAGAIN) {
			usleep(1000); /* the kernel is short of requests; it has no event for when they are available again */
		}
	}
	s->batched = 0;
}

static int wait_time(const struct session *s)
{
	uint64_t now = now_us();

	if (!s->o->flush_ms || s->flushing || !s->since_flush)
		return LATEST;
	if (now >= s->flush_at)
		return 0;
	return s->flush_at - now < LATEST * 1000 ? (int)((s->flush_at - now) / 1000) + 1 : LATEST;
}

static void reap(struct session *s)
{
	struct io_event events[MAX_DEPTH + 1];
	long n = aio_wait(s->aio, MAX_DEPTH + 1, events, wait_time(s));

	for (long i = 0; i < n; i++)
		completed(s, (struct iocb *)(uintptr_t)events[i].obj, events[i].res);
}

/* --- the session -------------------------------------------------------------------------------------------- */

static int finish(struct session *s, int reason)
{
	struct ended record = { ENDED, (uint8_t)reason, (uint16_t)s->error, s->issued, s->completed, s->flushes,
				s->flushed, time_of(s), { 0 } };

	out(&record, sizeof(record));
	out_flush();
	if (reason == STUCK) {
		/* Writes in flight cannot be cancelled: the process stays until the kernel gives up on them (exit_aio). */
		fprintf(stderr, "%u writes are still in flight\n", s->writing);
		_exit(4);
	}
	return reason == ERROR;
}

/* Run until there is nothing more to issue and nothing in flight. False after a second signal to end. */
static bool run(struct session *s)
{
	for (;;) {
		issue_writes(s);
		if (flush_due(s))
			issue_flush(s);
		if (!s->batched && !s->writing && !s->flushing)
			return true;
		submit(s);
		if (stop_signals > 1)
			return false;
		if (s->writing || s->flushing)
			reap(s);
	}
}

/* A flush without any write at the same time. */
static bool flush_alone(struct session *s)
{
	issue_flush(s);
	submit(s);
	while (s->flushing && stop_signals <= 1)
		reap(s);
	out_flush();
	return !s->flushing;
}

static void begin(struct session *s)
{
	const struct options *o = s->o;
	uint32_t largest = o->fill > o->block ? o->fill : o->block;
	struct timespec t;
	struct begun record = { BEGUN, 1, 0, o->session, o->run, o->device, 0, o->sectors, o->block, o->depth, logical_block(o->fd),
				{ 0 } };
	long error = aio_setup(MAX_DEPTH + 1, &s->aio);

	if (error)
		fail("io_setup", (int)-error);
	s->blocks = o->sectors / o->block;
	s->moving = s->blocks - o->rest / o->block;
	s->random = o->seed ? o->seed : 1;
	s->in_flight = calloc(1, s->blocks);
	if (!s->in_flight)
		fail("memory for blocks", ENOMEM);
	for (uint32_t i = 0; i < o->depth; i++)
		s->slots[i].buffer = buffer_of((size_t)(i < FILL_DEPTH ? largest : o->block) * SECTOR);
	clock_gettime(CLOCK_MONOTONIC, &t);
	record.begun_ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	s->begun = record.begun_ns / 1000;
	out(&record, sizeof(record));
	out_flush();
}

int write_session(const struct options *o)
{
	static struct session s;

	s.o = o;
	begin(&s);
	if (o->fill) {
		s.filling = true;
		if (!run(&s))
			return finish(&s, STUCK);
		s.filling = false;
		s.cursor = 0;
	}
	/* The content from before the load, written just now or read earlier, must be durable. */
	if (!s.error && !stop_signals && !flush_alone(&s))
		return finish(&s, STUCK);
	if (!run(&s))
		return finish(&s, STUCK);
	if (s.error)
		return finish(&s, ERROR);
	if (!flush_alone(&s))
		return finish(&s, STUCK);
	return finish(&s, s.error ? ERROR : stop_signals ? ASKED : DONE);
}
