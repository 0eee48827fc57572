#include "cupti.h"
#include "sys.h"

#include <stdatomic.h>

enum { SLOTS = 1024 };
enum { UNUSED = 0, FREE = 1, OUT = 2, CLOSED = 3 };

static struct cupti_buffers_slot {
	_Atomic uint32_t state;
	uint8_t *p;                  /* set before `state` becomes OUT for the first time, then for ever */
} slots[SLOTS];

uint8_t *cupti_buffer_take(void)
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		uint32_t expected = FREE;
		if (atomic_compare_exchange_strong(&slots[i].state, &expected, OUT))
			return slots[i].p;
		if (expected != UNUSED || !atomic_compare_exchange_strong(&slots[i].state, &expected, CLOSED))
			continue;
		void *p = sys_memory(CUPTI_BUFFER_BYTES);
		if (!p) {
			atomic_store(&slots[i].state, UNUSED);
			return NULL;
		}
		slots[i].p = p;
		atomic_store(&slots[i].state, OUT);
		return p;
	}
	return NULL;
}

/* A buffer that is not ours was given to CUPTI by another client: it is left to that. */
void cupti_buffer_give(uint8_t *buffer)
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		uint32_t state = atomic_load(&slots[i].state);
		if (state == UNUSED)
			return;
		if (state == OUT && slots[i].p == buffer) {
			atomic_store(&slots[i].state, FREE);
			return;
		}
	}
}
