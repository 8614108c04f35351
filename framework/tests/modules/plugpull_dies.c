// SPDX-License-Identifier: GPL-2.0
/*
 * Brings the kernel down on request: echo WAY [AFTER [CPU]] > /sys/module/plugpull_dies/parameters/now
 * AFTER milliseconds are left to the kernel itself to wait, so that nobody has to be alive to send anything. CPU is for
 * the ways that take one processor away.
 */
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/nmi.h>
#include <linux/panic.h>
#include <linux/rcupdate.h>
#include <linux/reboot.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

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

/* One place for all of them: since Linux 6.6 the cache may depend on the caller (CONFIG_RANDOM_KMALLOC_CACHES). */
static noinline void *object(void)
{
	return kmalloc(512, GFP_KERNEL);
}

/* A write to an object that was freed, which nothing notices unless slabs are checked: when it is given out again. */
static int write_freed(void)
{
	void *objects[64];
	unsigned char *volatile stale = object();
	unsigned int number;

	if (!stale)
		return -ENOMEM;
	kfree(stale);
	stale[300] = 0x42;
	for (number = 0; number < ARRAY_SIZE(objects); number++)
		objects[number] = object();
	for (number = 0; number < ARRAY_SIZE(objects); number++)
		kfree(objects[number]);
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

/* No grace period ends. The softlockup watchdog is kept quiet, as by a loop of a driver that knows how long it takes. */
static noinline int stall_rcu(void *unused)
{
	rcu_read_lock();
	for (;;) {
		touch_softlockup_watchdog();
		cpu_relax();
	}
	return 0;
}

static noinline int hit_a_bug(void *unused)
{
	BUG();
	return 0;
}

static noinline int warn(void *unused)
{
	WARN_ON(1);
	return 0;
}

static int reboot(void *unused)
{
	kernel_restart(NULL);
	return 0;
}

static void timer_fires(struct timer_list *unused)
{
	write_astray(NULL);
}
static DEFINE_TIMER(interrupt, timer_fires);

static struct task_struct *made_for(unsigned int cpu, int (*what)(void *))
{
	struct task_struct *task = kthread_create(what, NULL, "plugpull/%u", cpu);

	if (!IS_ERR(task))
		kthread_bind(task, cpu);
	return task;
}

static void on_cpu(unsigned int cpu, int (*what)(void *))
{
	struct task_struct *task = made_for(cpu, what);

	if (!IS_ERR(task))
		wake_up_process(task);
}

/* All are made before one is started: the thread that takes this processor does not give it back. */
static void on_every_cpu(int (*what)(void *))
{
	struct task_struct *tasks[8];
	unsigned int cpu, count = 0;

	for_each_online_cpu(cpu)
		if (count < ARRAY_SIZE(tasks))
			tasks[count++] = made_for(cpu, what);
	preempt_disable();
	while (count--)
		if (!IS_ERR(tasks[count]))
			wake_up_process(tasks[count]);
	preempt_enable();
}

static int die(const char *way, unsigned int cpu)
{
	if (sysfs_streq(way, "lockup"))
		on_every_cpu(spin);
	else if (sysfs_streq(way, "lockup1"))
		on_cpu(cpu, spin);
	else if (sysfs_streq(way, "deaf"))
		on_every_cpu(spin_deaf);
	else if (sysfs_streq(way, "deaf1"))
		on_cpu(cpu, spin_deaf);
	else if (sysfs_streq(way, "stall"))
		on_cpu(cpu, stall_rcu);
	else if (sysfs_streq(way, "astray"))
		kthread_run(write_astray, NULL, "plugpull-astray");
	else if (sysfs_streq(way, "interrupt"))
		mod_timer(&interrupt, jiffies + 1);
	else if (sysfs_streq(way, "bug"))
		kthread_run(hit_a_bug, NULL, "plugpull-bug");
	else if (sysfs_streq(way, "warn"))
		kthread_run(warn, NULL, "plugpull-warn");
	else if (sysfs_streq(way, "reset"))
		emergency_restart();
	else if (sysfs_streq(way, "reboot"))
		kthread_run(reboot, NULL, "plugpull-reboot");
	else if (sysfs_streq(way, "storm"))
		kthread_run(storm, NULL, "plugpull-storm");
	else if (sysfs_streq(way, "leak"))
		return leak();
	else if (sysfs_streq(way, "freed"))
		return write_freed();
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

static char later_way[16];
static unsigned int later_cpu;

static void later(struct work_struct *unused)
{
	printk(KERN_INFO "plugpull_dies: %s\n", later_way);
	die(later_way, later_cpu);
}
static DECLARE_DELAYED_WORK(work, later);

static int now(const char *text, const struct kernel_param *param)
{
	unsigned int after = 0, cpu = 0;
	char way[16];

	if (sscanf(text, "%15s %u %u", way, &after, &cpu) < 1 || !cpu_online(cpu))
		return -EINVAL;
	if (!after)
		return die(way, cpu);
	strscpy(later_way, way, sizeof(later_way));
	later_cpu = cpu;
	schedule_delayed_work(&work, msecs_to_jiffies(after));
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
	cancel_delayed_work_sync(&work);
	del_timer_sync(&interrupt);
}
module_exit(end);
MODULE_DESCRIPTION("Brings the kernel down on request");
MODULE_LICENSE("GPL");
