#include "cupti.h"

#include <unistd.h>

struct cupti cupti;

bool cupti_is_on(void)
{
	pid_t owner = atomic_load_explicit(&cupti.owner, memory_order_acquire);
	return owner && owner == getpid();
}
