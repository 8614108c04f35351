/*
 * Notes which parts of a driver run. Appended to one source file of a driver that is built with
 * -fsanitize-coverage=trace-pc: gcc then calls __sanitizer_cov_trace_pc() at the beginning of each basic block. Each
 * address is logged once, at the level of debugging messages. See framework/benchmarks/driver_lines.py.
 *
 * It may be called in any context, also with locks held and in interrupts, so it takes no lock and allocates nothing;
 * a worker does the logging.
 */
#include <linux/workqueue.h>
#include <linux/printk.h>
#include <linux/atomic.h>
#define PLUGPULL_MANY 65536
static unsigned long plugpull_seen[PLUGPULL_MANY], plugpull_new[PLUGPULL_MANY];
static atomic_t plugpull_count = ATOMIC_INIT(0);
static int plugpull_printed;
static atomic_t plugpull_begun = ATOMIC_INIT(0);
static void plugpull_print(struct work_struct *w);
static DECLARE_DELAYED_WORK(plugpull_work, plugpull_print);
#define PLUGPULL_QUIET __attribute__((no_sanitize_coverage)) notrace
PLUGPULL_QUIET static void plugpull_print(struct work_struct *w)
{
	int n = atomic_read(&plugpull_count);

	while (plugpull_printed < n) {
		char line[900];
		int len = 0;

		while (plugpull_printed < n && len < 800) {
			unsigned long pc = READ_ONCE(plugpull_new[plugpull_printed]);

			if (!pc)
				break;
			len += scnprintf(line + len, sizeof(line) - len, " %pS", (void *)pc);
			plugpull_printed++;
		}
		if (!len)
			break;
		printk(KERN_DEBUG "plugpull_lines:%s\n", line);
	}
	schedule_delayed_work(&plugpull_work, HZ);
}
PLUGPULL_QUIET void __sanitizer_cov_trace_pc(void);
PLUGPULL_QUIET void __sanitizer_cov_trace_pc(void)
{
	unsigned long pc = (unsigned long)__builtin_return_address(0);
	unsigned int i = (pc * 0x9E3779B1UL >> 12) % PLUGPULL_MANY, k;

	for (k = 0; k < 64; k++, i = (i + 1) % PLUGPULL_MANY) {
		unsigned long old = READ_ONCE(plugpull_seen[i]);

		if (old == pc)
			return;
		if (!old) {
			old = cmpxchg(&plugpull_seen[i], 0UL, pc);
			if (!old) {
				int at = atomic_inc_return(&plugpull_count) - 1;

				if (at < PLUGPULL_MANY)
					WRITE_ONCE(plugpull_new[at], pc);
				if (!atomic_cmpxchg(&plugpull_begun, 0, 1))
					schedule_delayed_work(&plugpull_work, HZ);
				return;
			}
			if (old == pc)
				return;
		}
	}
}
