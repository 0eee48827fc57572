#include "record/record.h"

void record_release(struct record_result *r)
{
	words_release(&r->notes);
	words_release(&r->warnings);
	buf_release(&r->capture);
	*r = (struct record_result){0};
}
