/* Shared by the two halves of the program: options, Linux AIO, records on standard output. */
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
	uint32_t session, block, depth, flush_writes, flush_ms, fua, fill, raw, rest;
	uint64_t blocks;
	enum order order;
	struct extent extents[MAX_EXTENTS];
	unsigned int extent_count;
	uint64_t sectors; /* sum over all extents */
};

/* The number of signals to end that arrived. */
extern volatile int stop_signals;

int write_session(const struct options *o);
int read_back(const struct options *o);

/* Records are collected; out_flush() writes them to standard output and blocks while nobody reads. */
void out(const void *record, size_t size);
void out_flush(void);

/* Linux AIO without libaio: three system calls. Each returns the kernel's result, or -errno. */
long aio_setup(unsigned int depth, aio_context_t *context);
long aio_submit(aio_context_t context, long count, struct iocb **list);
long aio_wait(aio_context_t context, long most, struct io_event *events, int milliseconds);

uint64_t now_us(void);
/* Bytes of a logical block of the disk. */
uint32_t logical_block(int fd);
void *buffer_of(size_t size);
void fail(const char *what, int error) __attribute__((noreturn));

#endif
