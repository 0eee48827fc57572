#include "analysis/recording.h"
#include "report/parts/device_table.h"
#include "report/parts/step_table.h"

static int devices_run(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	if (!p->device.rows.n && !p->gpu_op.rows.n)
		return err_set(e, ERR_DATA, "no devices: the input describes none and ran nothing on any; to record them: %s",
		               recording_how(p, RECORD_DEVICE_WORK));
	struct roles *r = args->has_steps ? step_roles(p, p->steps, &roles_own, args, e) : NULL; /* refuses steps that the input does not have */
	if (args->has_steps && !r)
		return -1;
	roles_free(r);
	section_start(&device_section, args, 0, t);
	device_table(p, args, false, t);
	return 0;
}

const struct report report_devices = {
	.name = "devices",
	.title = "Devices and how well they were used",
	.asks = ASKS_INPUT,
	.also = "device gpus hardware",
	.help = "Each device that the input describes or that ran something: what it is, how much of the steps' time it was busy, and "
	        "how well its kernels filled it. GPU utilisation says only that some kernel was running; SM efficiency, how many of "
	        "its multiprocessors had blocks; occupancy, how full these were. The time is that from the start of the first step "
	        "to the end of the last one.",
	.sections = (const struct section *const[]){&device_section, NULL},
	.timeline = true,
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.takes = REPORT_STEPS,
	.run = devices_run,
};
