/* How a program that was started under `opscope record --on-demand` is asked to record: a Unix socket (stream) of each process that listens, in a folder
 * that only its user may enter. Who connects is told of the process in a line, says in a line what to record, and is told in lines how that goes. Every line
 * ends in '\n'; keys come in this order, "=" and the value behind them without blanks, but for the last key of a line, whose value is the rest of it.
 *
 *   process   opscope-ask 1 pid=123 rank=-1 state=idle dir=/path/of/the/run       as soon as someone has connected. state: idle, or recording
 *   client    record name=asked-1 start=0 duration=500000000 steps=0 key=         within ASK_PATIENCE_S
 *   process   begun                                                               the first moment that is recorded
 *   process   done steps=3 ns=500000000 file=/path/of/the/run/asked-1/FILE
 *         or  error a sentence                                                    instead of any of these; the connection ends
 *
 * name: of the folder, made in the run directory if need be: letters, digits, '-', '_' and '.', which is not the first.
 * start: CLOCK_REALTIME in ns, 0 = now; ranks that are told the same one begin together. duration: ns from then on, 0 = without bound.
 * steps: so many, from the next one that begins; 0 = not by steps. key: ranges of this text are the steps, as for --key-range; empty: those of opscope_step(),
 * or ranges `ProfilerStep#N`. With both a duration and steps the recording ends with whichever is over first, with none when the client closes the
 * connection, or its half of it (shutdown), which ends any recording. */
#ifndef OPSCOPE_ASK_H
#define OPSCOPE_ASK_H

#define ASK_GREETING "opscope-ask 1 "
#define ASK_SUFFIX ".ask"        /* of sockets: PID-NS.ask */
#define ASK_STEP_RANGE "ProfilerStep#*"
enum {
	ASK_LINE_MOST = 1024,        /* bytes of a request, its '\n' included */
	ASK_ANSWER_MOST = 8192,      /* of an answer */
	ASK_NAME_MOST = 64,
	ASK_KEY_MOST = 511,
	ASK_PATIENCE_S = 2,
	ASK_AHEAD_S = 3600,          /* how far `start` may lie ahead */
};

/* Whether it may be the name of a folder. */
static inline int ask_is_name(const char *s)
{
	int n = 0;
	for (; s[n] && n <= ASK_NAME_MOST; n++) {
		char c = s[n];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || (c == '.' && n)))
			return 0;
	}
	return n && n <= ASK_NAME_MOST;
}

#endif
