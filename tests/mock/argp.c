/* argp_parse without memory: for the program by LD_PRELOAD. */
#include <argp.h>
#include <errno.h>

__attribute__((visibility("default"))) error_t argp_parse(const struct argp *argp, int argc, char **argv, unsigned flags, int *index, void *input)
{
	return ENOMEM;
}
