#include "record/ask_signal.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void ask_signal_ask(struct ask_signal *s, struct ask_group *g)
{
	struct buf folder = {0};
	struct err e;
	char pid[24];
	bool made;
	snprintf(pid, sizeof pid, "%d", (int)getpid());
	if (ask_find(pid, g, &e) < 0 || ask_make_folder(g, NULL, &folder, &made, &e) < 0) {
		words_printf(&s->notes, "a signal asked for a recording, in vain: %s", e.msg);
	} else {
		ask_record(g, s->request, folder.p, NULL, NULL);
		for (unsigned i = 0; i < g->n; i++)
			if (g->v[i].outcome == ASK_FAILED)
				words_printf(&s->notes, "process %d, asked by a signal: %s", (int)g->v[i].pid, g->v[i].text.p);
		rmdir(folder.p); /* where nothing came of it */
	}
	ask_release(g);
	buf_release(&folder);
}

static void *ask_signal_run(void *context)
{
	struct ask_signal *s = context;
	struct ask_group g = {0};
	ask_signal_ask(s, &g);
	atomic_store(&s->busy, false);
	return NULL;
}

void ask_signal_came(struct ask_signal *s)
{
	if (atomic_exchange(&s->busy, true)) {
		s->missed++;
		return;
	}
	if (s->started)
		pthread_join(s->thread, NULL);
	int why = pthread_create(&s->thread, NULL, ask_signal_run, s);
	s->started = why == 0;
	if (why) {
		words_printf(&s->notes, "a signal asked for a recording, in vain: cannot start a thread: %s", strerror(why));
		atomic_store(&s->busy, false);
	}
}

void ask_signal_end(struct ask_signal *s, struct words *notes)
{
	if (s->started)
		pthread_join(s->thread, NULL);
	for (int i = 0; i < s->notes.n; i++)
		words_printf(notes, "%s", s->notes.v[i]);
	if (s->missed)
		words_printf(notes, "%u %s for a recording while another one went on: none was made of %s", s->missed, s->missed == 1 ? "signal asked" : "signals asked",
		             s->missed == 1 ? "it" : "them");
	words_release(&s->notes);
}
