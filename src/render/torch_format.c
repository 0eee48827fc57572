#include "render/torch_format.h"

#include "render/number.h"

#include <math.h>

static void render_torch_format_put(struct buf *out, double v, int digits, const char *unit)
{
	number_fixed(out, v, digits, false);
	buf_cstr(out, unit);
}

void torch_text_time(struct buf *out, double us, const char *unit)
{
	const char *u = unit ? unit : us >= 1e6 ? "s" : us >= 1e3 ? "ms" : "us";
	render_torch_format_put(out, strcmp(u, "s") == 0 ? us / 1e6 : strcmp(u, "ms") == 0 ? us / 1e3 : us, 3, u);
}

void torch_text_share(struct buf *out, double percent)
{
	render_torch_format_put(out, percent, 2, "%");
}

const char *const torch_memory_units[4] = {" B", " KB", " MB", " GB"}, *const torch_memory_units_old[4] = {" b", " Kb", " Mb", " Gb"};

void torch_text_memory(struct buf *out, int64_t bytes, const char *const units[4])
{
	double size = fabs((double)bytes);
	int i = size >= 0x1p30 ? 3 : size >= 0x1p20 ? 2 : size >= 0x1p10 ? 1 : 0;
	if (i) {
		render_torch_format_put(out, (double)bytes / (double)((int64_t)1 << 10 * i), 2, units[i]);
	} else {
		buf_i64(out, bytes);
		buf_cstr(out, units[0]);
	}
}

struct torch_flops_unit torch_flops_unit_of(int64_t smallest)
{
	static const char *const names[] = {"FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"};
	double power = floor(log10((double)smallest) / 3);
	power = power < 0 ? 0 : power > 5 ? 5 : power;
	return (struct torch_flops_unit){names[(int)power], pow(10, -3 * power)};
}

void torch_text_flops(struct buf *out, int64_t flops, double scale)
{
	if (flops <= 0) {
		buf_cstr(out, "--");
		return;
	}
	struct buf text = {0};
	render_torch_format_put(&text, (double)flops * scale, 3, "");
	buf_fill(out, ' ', text.n < 8 ? 8 - text.n : 0);
	buf_str(out, buf_view(&text));
	buf_release(&text);
}
