// What trace.h adds for C++, and that it can be in several files of a program.
#include <opscope/trace.h>

#include <stdexcept>

int inner(int depth);
int inner(int depth)
{
	OPSCOPE_RANGE("inner");
	opscope::range all("class");
	if (depth == 0)
		throw std::runtime_error("out of all of them");
	return inner(depth - 1);
}

int main()
{
	const opscope_domain_t domain = opscope_domain("c++");
	{
		OPSCOPE_RANGE("one"); OPSCOPE_RANGE("of the same line"); OPSCOPE_OP("aten::neg", -1);
	}
	{
		opscope::range outer(domain, "outer");
		try {
			inner(2);
		} catch (const std::runtime_error &) {
			opscope_mark("caught");
		}
		OPSCOPE_OP("aten::relu", -1);
		opscope_arg_i64("count", 3);
	}
	opscope_collect(0);
	opscope_push("not wanted");
	opscope_pop();
	opscope_collect(1);
	opscope_leaving();
	return opscope_is_recording() ? 0 : 3;
}
