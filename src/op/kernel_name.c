#include "op/kernel_name.h"

static const char *const anonymous[] = {"(anonymous namespace)::", "<unnamed>::"};
static const char *const dropped[] = {"at::", "native::", "cuda::"};

/* Without anonymous name spaces, whose brackets are none of templates or parameters. */
static void drop_anonymous(struct buf *out, struct str name)
{
	for (size_t i = 0; i < name.n;) {
		struct str rest = {name.p + i, name.n - i};
		size_t skip = 0;
		for (size_t k = 0; k < sizeof anonymous / sizeof anonymous[0] && !skip; k++)
			skip = str_starts(rest, str_from(anonymous[k])) ? strlen(anonymous[k]) : 0;
		if (!skip)
			buf_char(out, name.p[i]);
		i += skip ? skip : 1;
	}
}

/* Up to the parameters: the first '(' outside template arguments. */
static struct str without_parameters(struct str s)
{
	unsigned depth = 0;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '<')
			depth++;
		else if (s.p[i] == '>' && depth)
			depth--;
		else if (s.p[i] == '(' && !depth && i)
			return (struct str){s.p, i};
	}
	return s;
}

/* The text outside template arguments; *args gets those of the last template. */
static void without_arguments(struct buf *out, struct str s, struct str *args)
{
	unsigned depth = 0;
	size_t first = 0;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '<' && depth++ == 0)
			first = i + 1;
		if (!depth)
			buf_char(out, s.p[i]);
		if (s.p[i] == '>' && depth && --depth == 0)
			*args = (struct str){s.p + first, i - first};
	}
}

static struct str last_word(struct str s)
{
	const char *space = memrchr(s.p, ' ', s.n);
	return space ? (struct str){space + 1, (size_t)(s.p + s.n - space - 1)} : s;
}

static struct str without_spaces(struct str s)
{
	bool any = true;
	while (any) {
		any = false;
		for (size_t i = 0; i < sizeof dropped / sizeof dropped[0]; i++) {
			struct str word = str_from(dropped[i]);
			if (!str_starts(s, word))
				continue;
			s = (struct str){s.p + word.n, s.n - word.n};
			any = true;
		}
	}
	return s;
}

/* A function that is but the shell of what its first template argument names. */
static bool is_shell(struct str function)
{
	static const char *const shells[] = {"Kernel", "Kernel2", "kernel", "device_kernel", "DeviceKernel"};
	const char *colon = memrchr(function.p, ':', function.n);
	struct str base = colon ? (struct str){colon + 1, (size_t)(function.p + function.n - colon - 1)} : function;
	for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
		if (str_eqc(base, shells[i]))
			return true;
	return false;
}

/* The first argument, itself without arguments. */
static void put_argument(struct buf *out, struct str args)
{
	size_t n = 0;
	while (n < args.n && args.p[n] != ',' && args.p[n] != '<')
		n++;
	if (!n || !memchr(args.p, '_', n)) /* a type or a number says no more */
		return;
	buf_char(out, '<');
	buf_put(out, args.p, n);
	buf_char(out, '>');
}

void kernel_short_name(struct buf *out, struct str name)
{
	struct buf plain = {0}, text = {0};
	struct str args = {0};
	drop_anonymous(&plain, name);
	if (plain.n)
		without_arguments(&text, without_parameters(buf_view(&plain)), &args);
	while (text.n && text.p[text.n - 1] == ' ')
		text.n--;
	struct str function = text.n ? without_spaces(last_word(buf_view(&text))) : (struct str){"", 0};
	size_t before = out->n;
	buf_str(out, function);
	if (args.n && is_shell(function))
		put_argument(out, args);
	if (out->n == before)
		buf_str(out, name);
	buf_release(&plain);
	buf_release(&text);
}
