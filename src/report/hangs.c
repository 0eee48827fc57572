/* Where a job hangs: which collectives wait for ever, and for whom. */
#include "query/report.h"
#include "report/parts/hang_table.h"

const struct report report_hangs = {
	.name = "hangs",
	.title = "Where the job hangs",
	.asks = ASKS_MOVE,
	.also = "hang deadlock timeout flight_recorder watchdog",
	.help = "At which collectives the ranks of a job wait for ever, which ranks did not come, and who is to blame. Give the dumps of torch's flight recorder of all ranks. A rank that others wait "
	        "for, and that waits for nothing itself, has a host that stopped; one that does not complete a collective which other ranks have completed is stuck: its GPU, or the thread that watches it. A rank that waits for others is not to blame.",
	.sections = (const struct section *const[]){&hang_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.run_job = hang_run,
};
