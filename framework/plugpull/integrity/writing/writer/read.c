/* Reading back: the content of each sector, sent as runs of sectors with the same kind of content. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "stamp.h"
#include "writer.h"

enum { READING = 15, STAMPED, ZEROED, UNREADABLE, ELSEWHERE, DAMAGED, MORE_DAMAGED, READ };

#define GIVE_UP 4096 /* sectors that could not be read: the rest of such a disk would take days of timeouts */

struct run {
	uint8_t kind, zero;
	uint16_t error;
	uint32_t sectors;
	uint64_t first, number;
	uint64_t run, device, origin; /* sent only for stamps that belong elsewhere */
} __attribute__((packed));
#define SHORT_RUN offsetof(struct run, run)

struct piece {
	struct iocb iocb;
	uint8_t *buffer;
	uint64_t first;
	uint32_t sectors;
	int64_t result;
	bool done;
};

struct reader {
	const struct options *o;
	aio_context_t aio;
	struct piece pieces[MAX_DEPTH];
	unsigned int extent, head, count; /* the current extent, and the queue of pieces */
	uint64_t at;			  /* position in the extent */
	struct run run;
	uint64_t read, sent, unreadable;
	uint32_t raw;
	unsigned int logical; /* sectors of a logical block */
	int error;
};

/* --- classifying sectors ------------------------------------------------------------------------------------- */

static void send_run(struct reader *r)
{
	if (!r->run.sectors)
		return;
	out(&r->run, r->run.kind == ELSEWHERE ? sizeof(r->run) : SHORT_RUN);
	r->sent += r->run.sectors;
	r->run.sectors = 0;
}

/* Extend the run by a sector, or begin another run. */
static void add(struct reader *r, const struct run *one)
{
	struct run *run = &r->run;
	bool same = run->sectors && run->kind == one->kind && run->first + run->sectors == one->first &&
		    run->number == one->number && run->error == one->error && run->sectors < UINT32_MAX;

	if (same && one->kind == ELSEWHERE)
		same = run->run == one->run && run->device == one->device && run->origin + run->sectors == one->origin;
	if (!same) {
		send_run(r);
		*run = *one;
		run->sectors = 0;
	}
	run->sectors++;
}

static bool all_zero(const uint8_t *sector)
{
	uint64_t any = 0, word;

	for (int i = 0; i < SECTOR; i += 8) {
		memcpy(&word, sector + i, 8);
		any |= word;
	}
	return !any;
}

static void damaged(struct reader *r, const uint8_t *sector, uint64_t where)
{
	struct run one = { .kind = DAMAGED, .first = where, .sectors = 1 };

	if (r->raw == r->o->raw) {
		one.kind = MORE_DAMAGED;
		add(r, &one);
		return;
	}
	send_run(r);
	r->raw++;
	out(&one, SHORT_RUN);
	out(sector, SECTOR);
	r->sent++;
}

static void look(struct reader *r, const uint8_t *sector, uint64_t where)
{
	struct run one = { .first = where };
	struct stamp s;

	r->read++;
	if (stamp_read(sector, &s)) {
		bool ours = s.run == r->o->run && s.device == r->o->device && s.sector == where;

		one.kind = ours ? STAMPED : ELSEWHERE;
		one.number = s.number;
		one.run = s.run;
		one.device = s.device;
		one.origin = s.sector;
		add(r, &one);
	} else if (all_zero(sector)) {
		one.kind = ZEROED;
		add(r, &one);
	} else {
		damaged(r, sector, where);
	}
}

/* --- reading -------------------------------------------------------------------------------------------------- */

static bool gone(int error)
{
	return error == ENODEV || error == ENXIO || error == ENOMEDIUM || error == ESHUTDOWN;
}

/* A piece could not be read as a whole: find the sectors that cannot be read. False to give up. */
static bool read_singly(struct reader *r, struct piece *p)
{
	for (uint32_t i = 0; i < p->sectors; i += r->logical) {
		ssize_t n = pread(r->o->fd, p->buffer, (size_t)r->logical * SECTOR, (off_t)((p->first + i) * SECTOR));

		if (n == (ssize_t)r->logical * SECTOR) {
			for (unsigned int k = 0; k < r->logical; k++)
				look(r, p->buffer + k * SECTOR, p->first + i + k);
			continue;
		}
		if (n >= 0 || gone(errno)) {
			r->error = n >= 0 ? ENOSPC : errno; /* beyond the end of the disk, or the disk is gone */
			return false;
		}
		for (unsigned int k = 0; k < r->logical; k++) {
			struct run one = { .kind = UNREADABLE, .error = (uint16_t)errno, .first = p->first + i + k };

			add(r, &one);
		}
		r->unreadable += r->logical;
		if (r->unreadable >= GIVE_UP) {
			r->error = EIO;
			return false;
		}
		if (stop_signals) {
			r->error = EINTR;
			return false;
		}
	}
	return true;
}

static bool take(struct reader *r, struct piece *p)
{
	if (p->result != (int64_t)p->sectors * SECTOR)
		return read_singly(r, p);
	for (uint32_t i = 0; i < p->sectors; i++)
		look(r, p->buffer + (size_t)i * SECTOR, p->first + i);
	return true;
}

static void ask(struct reader *r)
{
	const struct extent *extent = &r->o->extents[r->extent];
	struct piece *p = &r->pieces[(r->head + r->count) % r->o->depth];
	struct iocb *list = &p->iocb;
	uint64_t left = extent->sectors - r->at;
	long n;

	p->first = extent->first + r->at;
	p->sectors = left < r->o->block ? (uint32_t)left : r->o->block;
	p->done = false;
	memset(&p->iocb, 0, sizeof(p->iocb));
	p->iocb.aio_data = (uintptr_t)p;
	p->iocb.aio_lio_opcode = IOCB_CMD_PREAD;
	p->iocb.aio_fildes = (uint32_t)r->o->fd;
	p->iocb.aio_buf = (uintptr_t)p->buffer;
	p->iocb.aio_nbytes = (uint64_t)p->sectors * SECTOR;
	p->iocb.aio_offset = (int64_t)(p->first * SECTOR);
	n = aio_submit(r->aio, 1, &list);
	if (n != 1) {
		p->done = true;
		p->result = n;
	}
	r->count++;
	r->at += p->sectors;
	if (r->at == extent->sectors) {
		r->extent++;
		r->at = 0;
	}
}

static void wait_for(struct reader *r, struct piece *p)
{
	struct io_event events[MAX_DEPTH];

	while (!p->done && stop_signals <= 1) {
		long n = aio_wait(r->aio, MAX_DEPTH, events, 200);

		for (long i = 0; i < n; i++) {
			struct piece *done = (struct piece *)(uintptr_t)events[i].data;

			done->done = true;
			done->result = events[i].res;
		}
	}
}

int read_back(const struct options *o)
{
	static struct reader r;
	struct run end = { .kind = READ };
	struct run begin = { .kind = READING, .sectors = o->session, .first = o->run, .number = o->device };

	r.o = o;
	r.logical = logical_block(o->fd) / SECTOR;
	/* Drop what the kernel has cached of the disk. O_DIRECT bypasses it, but not for a file in tests. */
	ioctl(o->fd, BLKFLSBUF, 0);
	if (o->session)
		out(&begin, SHORT_RUN);
	if (aio_setup(MAX_DEPTH, &r.aio))
		fail("io_setup", errno);
	for (uint32_t i = 0; i < o->depth; i++)
		r.pieces[i].buffer = buffer_of((size_t)o->block * SECTOR);
	while (!r.error && (r.count || r.extent < o->extent_count)) {
		struct piece *p;

		while (r.count < o->depth && r.extent < o->extent_count)
			ask(&r);
		p = &r.pieces[r.head];
		wait_for(&r, p);
		if (stop_signals || !p->done) {
			r.error = EINTR;
			break;
		}
		if (!take(&r, p))
			break;
		r.head = (r.head + 1) % o->depth;
		r.count--;
	}
	send_run(&r);
	end.error = (uint16_t)r.error;
	end.sectors = r.logical * SECTOR;
	end.first = r.read;
	end.number = r.sent;
	out(&end, SHORT_RUN);
	out_flush();
	return r.error ? 1 : 0;
}
