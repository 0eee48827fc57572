/* How a process that was started under `opscope record --on-demand` is asked to record. Each process listens on a Unix socket (stream), in a folder that only
 * its user may enter. A client connects, and both sides say lines:
 *
 *   process   opscope-ask 1 pid=123 rank=-1 state=idle dir=/path/of/the/run       as soon as a client has connected; state: idle or recording
 *   client    record name=asked-1 start=0 duration=500000000 steps=0 key=         within ASK_PATIENCE_S
 *   process   begun                                                               when the recording begins
 *   process   done steps=3 ns=500000000 file=/path/of/the/run/asked-1/FILE        when the recording has ended; the connection ends
 *         or  error a sentence                                                    instead of any line of the process; the connection ends
 *
 * A line ends in '\n'. Its keys come in this order. A value follows its key and "=", and has no blanks, except that of the last key: it is the rest of the line.
 *
 *   name       of a folder in the run directory, which is made if need be: letters, digits, '-', '_' and '.', the last not at the beginning
 *   start      CLOCK_REALTIME in ns, 0 = now; ranks that are told the same start begin together
 *   duration   ns from the start on; 0 = not bounded by time
 *   steps      number of steps, from the next one that begins; 0 = not bounded by steps
 *   key        ranges of this text are the steps, as for --key-range; empty = the steps of opscope_step(), or ranges `ProfilerStep#N`
 *
 * With a duration and steps, the recording ends with whichever is over first. Any recording ends when the client closes the connection or its half of it (shutdown). */
#ifndef OPSCOPE_ASK_H
#define OPSCOPE_ASK_H

#define ASK_GREETING "opscope-ask 1 "
#define ASK_SUFFIX ".ask"        /* sockets are named PID-NS-DEVICE-INODE.ask, the latter two of the run directory, so that one can tell whose process is silent */
#define ASK_RUN_FORMAT "-%llx-%llx"
#define ASK_STEP_RANGE "ProfilerStep#*"
enum {
	ASK_LINE_MOST = 1024,        /* bytes of a request, with its '\n' */
	ASK_ANSWER_MOST = 8192,      /* bytes of a line of the process */
	ASK_NAME_MOST = 64,
	ASK_KEY_MOST = 511,
	ASK_PATIENCE_S = 2,
	ASK_AHEAD_S = 3600,          /* how far `start` may lie ahead */
};

/* Whether s may be the name in a request. */
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
