/* How inputs of the targets that read whole files are mutated: as what they are, mostly; sometimes only the question at their end, sometimes as bytes. */
#include "mutate.h"
#include "question.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *two, size_t two_size, uint8_t *out, size_t max_size,
                                 unsigned seed);

static bool is_json(const uint8_t *data, size_t size)
{
	size_t i = 0;
	while (i < size && strchr(" \t\r\n", data[i]) && data[i])
		i++;
	return i < size && (data[i] == '{' || data[i] == '[');
}

static mutator *choose(const uint8_t *data, size_t size)
{
	enum { APPLICATION_ID_AT = 68 };
	static const char sqlite[] = "SQLite format 3";
	if (is_json(data, size))
		return mutate_json;
	if (size < APPLICATION_ID_AT + 4 || memcmp(data, sqlite, sizeof sqlite) != 0)
		return NULL;
	return memcmp(data + APPLICATION_ID_AT, "OPSC", 4) == 0 ? mutate_opscope : mutate_pages;
}

static size_t mutate_file(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	mutator *m = seed % 8 ? choose(data, size) : NULL;
	return m ? m(data, size, max_size, seed / 8) : LLVMFuzzerMutate(data, size, max_size);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	struct question q;
	if (!target_asks || max_size <= QUESTION_BYTES)
		return mutate_file(data, size, max_size, seed);
	size_t file = question_take(data, size, &q), room = max_size - QUESTION_BYTES;
	if (file > room)
		file = room;
	if (seed % 4 == 0)
		LLVMFuzzerMutate((uint8_t *)q.ask, sizeof q.ask, sizeof q.ask);
	else
		file = mutate_file(data, file, room, seed / 4);
	question_put(data + file, &q);
	return file + QUESTION_BYTES;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *two, size_t two_size, uint8_t *out, size_t max_size, unsigned seed)
{
	struct question q;
	size_t tail = target_asks ? QUESTION_BYTES : 0;
	if (target_asks) {
		one_size = question_take(one, one_size, &q);
		two_size = question_take(two, two_size, &(struct question){0});
	}
	if (max_size <= tail || !is_json(one, one_size) || !is_json(two, two_size))
		return 0;
	size_t n = cross_json((struct str){(const char *)one, one_size}, (struct str){(const char *)two, two_size}, out, max_size - tail, seed);
	if (n && tail)
		question_put(out + n, &q);
	return n ? n + tail : 0;
}
