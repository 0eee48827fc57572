#include "base/now.h"

#include <stdlib.h>
#include <time.h>

int64_t now_realtime_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

struct str now_text(char text[NOW_BYTES])
{
	const char *fixed = getenv("SOURCE_DATE_EPOCH");
	int64_t epoch = 0;
	struct tm tm;
	time_t at = fixed && str_to_i64(str_from(fixed), &epoch) ? (time_t)epoch : time(NULL);
	if (!gmtime_r(&at, &tm))
		return (struct str){"", 0};
	return (struct str){text, strftime(text, NOW_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm)};
}
