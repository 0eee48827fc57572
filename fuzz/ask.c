/* ask_FORMAT: any bytes are read as a file of FORMAT, and the two asks at their end (question.h) are answered: reports in any form, advice, exports. */
#include "question.h"
#include "target.h"

const bool target_asks = true;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct question q;
	size = question_take(data, size, &q);
	struct profile *p = target_open(FORMAT, data, size, true);
	struct buf answer = {0};
	for (int i = 0; p && i < QUESTION_ASKS; i++) {
		buf_clear(&answer);
		question_answer(p, q.ask[i], &answer);
	}
	buf_release(&answer);
	profile_free(p);
	return 0;
}
