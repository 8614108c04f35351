// SPDX-License-Identifier: GPL-2.0
/* Brings the kernel down on request: echo WAY > /sys/module/plugpull_dies/parameters/now */
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/panic.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>

static noinline void spin_for_ever(void)
{
	for (;;)
		cpu_relax();
}

static int spin(void *unused)
{
	preempt_disable();
	spin_for_ever();
	return 0;
}

static int spin_deaf(void *unused)
{
	local_irq_disable();
	spin_for_ever();
	return 0;
}

static noinline int write_astray(void *unused)
{
	*(volatile int *)0x50 = 1;
	return 0;
}

static int storm(void *unused)
{
	unsigned int line;

	for (line = 0; line < 200000; line++)
		printk(KERN_DEBUG "plugpull_dies: line %u of a storm\n", line);
	msleep(100);
	printk(KERN_DEBUG "plugpull_dies: the storm is over\n");
	return 0;
}

/* Sixteen times, since caches are counted by whole slabs of several objects. */
static int leak(void)
{
	int number;

	for (number = 0; number < 16; number++) {
		void *volatile lost = kmalloc(4096, GFP_KERNEL);

		if (!lost)
			return -ENOMEM;
	}
	return 0;
}

/* Uninterruptible, as a driver that waits for a device which is gone. */
static noinline int wait_in_vain(void *unused)
{
	msleep(300000);
	return 0;
}

/* As a worker that queues itself again and again: it lets others run, so that no detector reports it. */
static noinline int spin_politely(void *unused)
{
	unsigned long end = jiffies + 20 * HZ;

	while (time_before(jiffies, end))
		cond_resched();
	return 0;
}

static void on_every_cpu(int (*what)(void *))
{
	unsigned int cpu;

	for_each_online_cpu(cpu) {
		struct task_struct *task = kthread_create(what, NULL, "plugpull/%u", cpu);

		if (IS_ERR(task))
			continue;
		kthread_bind(task, cpu);
		wake_up_process(task);
	}
}

static int now(const char *way, const struct kernel_param *param)
{
	if (sysfs_streq(way, "lockup"))
		on_every_cpu(spin);
	else if (sysfs_streq(way, "deaf"))
		on_every_cpu(spin_deaf);
	else if (sysfs_streq(way, "astray"))
		kthread_run(write_astray, NULL, "plugpull-astray");
	else if (sysfs_streq(way, "storm"))
		kthread_run(storm, NULL, "plugpull-storm");
	else if (sysfs_streq(way, "leak"))
		return leak();
	else if (sysfs_streq(way, "block"))
		kthread_run(wait_in_vain, NULL, "plugpull-block");
	else if (sysfs_streq(way, "spin"))
		kthread_run(spin_politely, NULL, "plugpull-spin");
	else if (sysfs_streq(way, "taint"))
		add_taint(TAINT_WARN, LOCKDEP_STILL_OK);
	else
		return -EINVAL;
	return 0;
}

static const struct kernel_param_ops ways = { .set = now };
module_param_cb(now, &ways, NULL, 0200);

static int __init begin(void)
{
	return 0;
}
module_init(begin);

static void __exit end(void)
{
}
module_exit(end);
MODULE_DESCRIPTION("Brings the kernel down on request");
MODULE_LICENSE("GPL");
