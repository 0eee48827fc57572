/* What host-side calls and ranges do while they keep the GPU waiting: rows of host_names.def. */
#ifndef OPSCOPE_DETECT_HOST_NAMES_H
#define OPSCOPE_DETECT_HOST_NAMES_H

#include "store/profile.h"

enum host_kind { HOST_PLAIN, HOST_SYNC, HOST_SYNC_COPY, HOST_ALLOC, HOST_LOAD, HOST_GC, HOST_DATA };

enum host_kind host_kind_of(struct str name);

/* Asked once per name: `known` has a zeroed byte for each string of the profile. */
static inline enum host_kind host_kind_cached(const struct profile *p, uint32_t name, uint8_t *known)
{
	if (!known[name])
		known[name] = (uint8_t)(1 + host_kind_of(profile_str(p, name)));
	return (enum host_kind)(known[name] - 1);
}

#endif
