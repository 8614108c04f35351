/* The format of a stamped sector; ../../oracle/stamp_format.py specifies it. */
#ifndef STAMP_H
#define STAMP_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SECTOR 512
#define MAGIC "plugpull"
#define PAYLOAD_AT 48
#define PAYLOAD_WORDS 57
#define TAIL_AT 504
#define CRC_AT 508

struct stamp {
	char magic[8];
	uint64_t run, device, sector, number;
	uint32_t index, count;
};

/* CRC-32 (ISO 3309) eight bytes at a time: Kounavis and Berry, "Novel table lookup-based algorithms", 2008. */
extern uint32_t crc_table[8][256];
void crc_init(void);

static inline uint32_t crc_of(const uint8_t *data)
{
	uint32_t crc = 0xffffffff;
	int i;

	for (i = 0; i + 8 <= CRC_AT; i += 8) {
		uint64_t word;

		memcpy(&word, data + i, 8);
		word ^= crc;
		crc = crc_table[7][word & 0xff] ^ crc_table[6][word >> 8 & 0xff] ^ crc_table[5][word >> 16 & 0xff] ^
		      crc_table[4][word >> 24 & 0xff] ^ crc_table[3][word >> 32 & 0xff] ^
		      crc_table[2][word >> 40 & 0xff] ^ crc_table[1][word >> 48 & 0xff] ^ crc_table[0][word >> 56];
	}
	for (; i < CRC_AT; i++)
		crc = crc >> 8 ^ crc_table[0][(crc ^ data[i]) & 0xff];
	return ~crc;
}

static inline uint64_t stamp_seed(const struct stamp *s)
{
	uint64_t word = s->run * 0x9E3779B97F4A7C15u ^ s->device * 0xC2B2AE3D27D4EB4Fu ^
			s->sector * 0x165667B19E3779F9u ^ s->number * 0xD6E8FEB86659FD93u;

	word ^= (uint64_t)s->index << 32 | s->count;
	return word ? word : 0x9E3779B97F4A7C15u;
}

static inline uint64_t stamp_next(uint64_t word)
{
	word ^= word << 13;
	word ^= word >> 7;
	return word ^ word << 17;
}

static inline void stamp_write(uint8_t *out, const struct stamp *s)
{
	uint64_t word = stamp_seed(s);
	uint32_t low = (uint32_t)s->number, crc;
	int i;

	memcpy(out, s, sizeof(*s));
	for (i = 0; i < PAYLOAD_WORDS; i++) {
		word = stamp_next(word);
		memcpy(out + PAYLOAD_AT + 8 * i, &word, 8);
	}
	memcpy(out + TAIL_AT, &low, 4);
	crc = crc_of(out);
	memcpy(out + CRC_AT, &crc, 4);
}

/* True if the sector is exactly what stamp_write makes from its first 48 bytes. */
static inline bool stamp_read(const uint8_t *in, struct stamp *s)
{
	uint64_t word;
	uint32_t low, crc;
	int i;

	memcpy(s, in, sizeof(*s));
	if (memcmp(s->magic, MAGIC, 8))
		return false;
	word = stamp_seed(s);
	for (i = 0; i < PAYLOAD_WORDS; i++) {
		word = stamp_next(word);
		if (memcmp(in + PAYLOAD_AT + 8 * i, &word, 8))
			return false;
	}
	memcpy(&low, in + TAIL_AT, 4);
	memcpy(&crc, in + CRC_AT, 4);
	return low == (uint32_t)s->number && crc == crc_of(in);
}

#endif
