/* What the two halves of the program share: its options, Linux AIO, records on standard output. */
#ifndef WRITER_H
#define WRITER_H

#include <linux/aio_abi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define MAX_EXTENTS 64
#define MAX_DEPTH 256

enum order { SEQUENTIAL, RANDOM, HOT };

struct extent {
	uint64_t first, sectors;
};

struct options {
	int fd;
	uint64_t run, device, seed;
	uint32_t session, block, depth, flush_writes, flush_ms, fua, fill, raw;
	uint64_t blocks;
	enum order order;
	struct extent extents[MAX_EXTENTS];
	unsigned int extent_count;
	uint64_t sectors; /* of all extents */
};

/* How often we were told to end. */
extern volatile int told;

int write_session(const struct options *o);
int read_back(const struct options *o);

/* Records: collected, and written to standard output by out_flush(), which blocks for as long as nobody reads. */
void out(const void *record, size_t size);
void out_flush(void);

/* Linux AIO without libaio: three system calls. Each returns what the kernel does, or -errno. */
long aio_setup(unsigned int depth, aio_context_t *context);
long aio_submit(aio_context_t context, long count, struct iocb **list);
long aio_wait(aio_context_t context, long most, struct io_event *events, int milliseconds);

uint64_t now_us(void);
/* Bytes of a logical block of the disk. */
uint32_t logical_block(int fd);
void *buffer_of(size_t size);
void fail(const char *what, int error) __attribute__((noreturn));

#endif
