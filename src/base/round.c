#include "base/round.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int64_t round_us(int64_t ns)
{
	int64_t us = ns / 1000, rest = ns % 1000;
	int64_t away = ns < 0 ? -1 : 1, size = rest < 0 ? -rest : rest;
	if (size > 500 || (size == 500 && us % 2 != 0))
		us += away;
	return us;
}

double round_digits(double x, int digits)
{
	if (!isfinite(x))
		return x;
	/* printf rounds the exact binary value half to even, which is what Python does. */
	char text[400];
	snprintf(text, sizeof text, "%.*f", digits, x);
	return strtod(text, NULL);
}

int64_t round_even(double x)
{
	return isfinite(x) ? (int64_t)nearbyint(x) : 0;
}
