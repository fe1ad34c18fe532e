// SPDX-License-Identifier: GPL-2.0-only
/* gpuctl's values and its suggestions for mistyped words. */
#include <errno.h>

#include "gpuctl.h"
#include "tap.h"

static void check_mode(const char *text, int want, uint32_t width,
		       uint32_t height)
{
	uint32_t got[2] = { 12, 34 };

	if (!TAP_EQ(parse_mode(text, got), want))
		tap_diag("mode '%s'", text);
	/* what is refused changes nothing */
	TAP_EQ(got[0], want ? 12 : width);
	TAP_EQ(got[1], want ? 34 : height);
}

static void modes(void)
{
	check_mode("max", 0, 0, 0);
	check_mode("64x64", 0, 64, 64);
	check_mode("1280x720", 0, 1280, 720);
	check_mode("01280x0720", 0, 1280, 720);
	/* the module knows the type */
	check_mode("4294967295x64", 0, UINT32_MAX, 64);
	check_mode("63x64", -ERANGE, 0, 0);
	check_mode("64x63", -ERANGE, 0, 0);
	check_mode("0x0", -ERANGE, 0, 0);
	check_mode("4294967296x64", -ERANGE, 0, 0);
	check_mode("64x18446744073709551680", -ERANGE, 0, 0);
	check_mode("", -EINVAL, 0, 0);
	check_mode("x", -EINVAL, 0, 0);
	check_mode("1280", -EINVAL, 0, 0);
	check_mode("1280x", -EINVAL, 0, 0);
	check_mode("x720", -EINVAL, 0, 0);
	check_mode("1280x720x3", -EINVAL, 0, 0);
	check_mode("1280X720", -EINVAL, 0, 0);
	check_mode("-1280x720", -EINVAL, 0, 0);
	check_mode("1280x 720", -EINVAL, 0, 0);
	check_mode("1280x7e2", -EINVAL, 0, 0);
	check_mode("maximum", -EINVAL, 0, 0);
	check_mode("1111111111111111111111x720", -EINVAL, 0, 0);
}

static void check_fps(const char *text, int want, uint32_t millihertz)
{
	uint32_t got = 12345;
	int ret = parse_fps(text, &got);

	if (!TAP_EQ(ret, want))
		tap_diag("fps '%s'", text);
	/* what is refused changes nothing */
	TAP_EQ(got, want ? 12345 : millihertz);
}

static void fps_good(void)
{
	check_fps("none", 0, 0);
	check_fps("1", 0, 1000);
	check_fps("30", 0, 30000);
	check_fps("030", 0, 30000);
	check_fps("29.97", 0, 29970);
	check_fps("29.970", 0, 29970);
	check_fps("59.9400000", 0, 59940);
	check_fps("1.001", 0, 1001);
	check_fps("60.", 0, 60000);
	check_fps("10000", 0, 10000000);
	check_fps("10000.000", 0, 10000000);
}

static void fps_out_of_range(void)
{
	check_fps("0", -ERANGE, 0);
	check_fps("0.999", -ERANGE, 0);
	check_fps(".5", -ERANGE, 0);
	check_fps("10000.001", -ERANGE, 0);
	check_fps("10001", -ERANGE, 0);
	/* wraps to 30000 in 32 bits, in millihertz and before */
	check_fps("4294997.296", -ERANGE, 0);
	check_fps("4294967326", -ERANGE, 0);
	check_fps("18446744073709551646", -ERANGE, 0);
	check_fps("99999999999999999999999999999999", -ERANGE, 0);
}

static void fps_no_number(void)
{
	check_fps("", -EINVAL, 0);
	check_fps(".", -EINVAL, 0);
	check_fps("-30", -EINVAL, 0);
	check_fps("+30", -EINVAL, 0);
	check_fps("30fps", -EINVAL, 0);
	check_fps("3 0", -EINVAL, 0);
	check_fps(" 30", -EINVAL, 0);
	check_fps("1.2.3", -EINVAL, 0);
	check_fps("0x1e", -EINVAL, 0);
	check_fps("3e1", -EINVAL, 0);
	check_fps("None", -EINVAL, 0);
	check_fps("29.9701", -EINVAL, 0);
	check_fps("inf", -EINVAL, 0);
}

static void check_share(const char *text, int want, uint32_t ppm)
{
	uint32_t got = 12345;

	if (!TAP_EQ(parse_share(text, &got), want))
		tap_diag("share '%s'", text);
	TAP_EQ(got, want ? 12345 : ppm);
}

static void shares(void)
{
	check_share("none", 0, 0);
	check_share("30%", 0, 300000);
	check_share("30.5%", 0, 305000);
	check_share("33.3333%", 0, 333333);
	check_share("33.33330000%", 0, 333333);
	check_share("0.1%", 0, 1000);
	check_share(".1%", 0, 1000);
	check_share("100%", 0, 1000000);
	check_share("300000ppm", 0, 300000);
	check_share("1000ppm", 0, 1000);
	check_share("1000000ppm", 0, 1000000);

	check_share("0%", -ERANGE, 0);
	check_share("0.0999%", -ERANGE, 0);
	check_share("100.0001%", -ERANGE, 0);
	check_share("999ppm", -ERANGE, 0);
	check_share("1000001ppm", -ERANGE, 0);
	/* wraps to 30 % in 32 bits */
	check_share("4295267296ppm", -ERANGE, 0);
	check_share("429526.7296%", -ERANGE, 0);

	/* of which unit is not said */
	check_share("30", -EINVAL, 0);
	check_share("0", -EINVAL, 0);
	check_share("0.3", -EINVAL, 0);
	check_share("", -EINVAL, 0);
	check_share("%", -EINVAL, 0);
	check_share(".%", -EINVAL, 0);
	check_share("ppm", -EINVAL, 0);
	check_share("-30%", -EINVAL, 0);
	check_share("30 %", -EINVAL, 0);
	check_share("30%%", -EINVAL, 0);
	check_share("1.2.3%", -EINVAL, 0);
	check_share("33.33333%", -EINVAL, 0);
	check_share("1000.5ppm", -EINVAL, 0);
	check_share("None", -EINVAL, 0);
	check_share("30percent", -EINVAL, 0);
}

static void check_time(const char *text, uint32_t unit_us, int want,
		       uint32_t value)
{
	uint32_t got = 12345;

	if (!TAP_EQ(parse_time(text, unit_us, 100, 1000000, &got), want))
		tap_diag("time '%s' in units of %u us", text, unit_us);
	TAP_EQ(got, want ? 12345 : value);
}

static void times(void)
{
	uint32_t got = 7;

	check_time("500us", 1, 0, 500);
	check_time("10ms", 1, 0, 10000);
	check_time("0.5ms", 1, 0, 500);
	check_time("1.001ms", 1, 0, 1001);
	check_time("1s", 1, 0, 1000000);
	check_time("0.000100s", 1, 0, 100);
	check_time("0.1000000s", 1, 0, 100000);
	check_time("4s", 1000, 0, 4000);
	check_time("100000us", 1000, 0, 100);
	check_time("250ms", 1000, 0, 250);

	check_time("99us", 1, -ERANGE, 0);
	check_time("1.000001s", 1, -ERANGE, 0);
	check_time("0us", 1, -ERANGE, 0);
	check_time("0", 1, -ERANGE, 0);
	check_time("99ms", 1000, -ERANGE, 0);
	/* wraps to 1000 us in 32 bits */
	check_time("4294968296us", 1, -ERANGE, 0);
	check_time("4294968.296ms", 1, -ERANGE, 0);
	check_time("99999999999999999999s", 1, -ERANGE, 0);

	check_time("10", 1, -EINVAL, 0);
	check_time("", 1, -EINVAL, 0);
	check_time("ms", 1, -EINVAL, 0);
	check_time("10m", 1, -EINVAL, 0);
	check_time("10 ms", 1, -EINVAL, 0);
	check_time("10ns", 1, -EINVAL, 0);
	check_time("10min", 1, -EINVAL, 0);
	check_time("-10ms", 1, -EINVAL, 0);
	check_time("1e3us", 1, -EINVAL, 0);
	check_time("100.5us", 1, -EINVAL, 0);
	check_time("1.0005ms", 1, -EINVAL, 0);
	check_time("100.5ms", 1000, -EINVAL, 0);
	check_time("none", 1, -EINVAL, 0);

	/* nothing is as much in any unit */
	TAP_EQ(parse_time("0", 1, 0, 1000000, &got), 0);
	TAP_EQ(got, 0);
}

static void whole_numbers(void)
{
	uint32_t value = 7;

	TAP_EQ(parse_u32("1", 1, 10000, &value), 0);
	TAP_EQ(value, 1);
	TAP_EQ(parse_u32("10000", 1, 10000, &value), 0);
	TAP_EQ(value, 10000);
	TAP_EQ(parse_u32("4294967295", 0, UINT32_MAX, &value), 0);
	TAP_EQ(value, UINT32_MAX);
	value = 7;
	TAP_EQ(parse_u32("0", 1, 10000, &value), -ERANGE);
	TAP_EQ(parse_u32("10001", 1, 10000, &value), -ERANGE);
	TAP_EQ(parse_u32("4294967296", 0, UINT32_MAX, &value), -ERANGE);
	TAP_EQ(parse_u32("18446744073709551617", 0, UINT32_MAX, &value),
	       -ERANGE);
	TAP_EQ(parse_u32("", 0, 10, &value), -EINVAL);
	TAP_EQ(parse_u32("-1", 0, 10, &value), -EINVAL);
	TAP_EQ(parse_u32("1.5", 0, 10, &value), -EINVAL);
	TAP_EQ(parse_u32("5 ", 0, 10, &value), -EINVAL);
	TAP_EQ(parse_u32("0x5", 0, 10, &value), -EINVAL);
	TAP_EQ(value, 7);
}

static void real_numbers(void)
{
	double value = 7;

	TAP_EQ(parse_double("-0.5", &value), 0);
	TAP_NEAR(value, -0.5, 0);
	TAP_EQ(parse_double("2e-3", &value), 0);
	TAP_NEAR(value, 0.002, 1e-12);
	value = 7;
	TAP_EQ(parse_double("", &value), -EINVAL);
	TAP_EQ(parse_double("nan", &value), -EINVAL);
	TAP_EQ(parse_double("inf", &value), -EINVAL);
	TAP_EQ(parse_double("1x", &value), -EINVAL);
	TAP_EQ(parse_double("--1", &value), -EINVAL);
	TAP_NEAR(value, 7, 0);
	TAP_EQ(parse_double("1e999", &value), -ERANGE);
}

static void suggestions(void)
{
	static const char *const words[] = {
		"dev", "vgpu", "monitor", "top", "ctl", "help", "version", NULL
	};
	static const char *const keys[] = { "weight", "fps", NULL };
	static const char *const settings[] = { "gpu-limit", "period", NULL };
	char longest[200];

	TAP_STR(suggest("vgup", words), "vgpu");
	TAP_STR(suggest("vgpus", words), "vgpu");
	TAP_STR(suggest("mon", words), "monitor");
	TAP_STR(suggest("montior", words), "monitor");
	TAP_STR(suggest("wieght", keys), "weight");
	TAP_STR(suggest("fsp", keys), "fps");
	/* the specification's name, or a part of ours */
	TAP_STR(suggest("fps-limit", keys), "fps");
	TAP_STR(suggest("gpu-period", settings), "period");
	TAP_STR(suggest("gpu_limit", settings), "gpu-limit");
	TAP_STR(suggest("limit", settings), "gpu-limit");
	TAP_CHECK(!suggest("periods-of-time", keys));
	TAP_CHECK(!suggest("banana", words));
	TAP_CHECK(!suggest("12", keys));
	TAP_CHECK(!suggest("dev", NULL));
	memset(longest, 'v', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	TAP_CHECK(!suggest(longest, words));
}

int main(void)
{
	tap_run(fps_good, "frames per second become millihertz without rounding");
	tap_run(fps_out_of_range, "frames per second out of range are refused");
	tap_run(fps_no_number, "an invalid number of frames per second is refused");
	tap_run(shares, "parts of the engine time become parts per million");
	tap_run(times, "times become whole units without rounding");
	tap_run(modes, "modes are two numbers of pixels, or the largest");
	tap_run(whole_numbers, "whole numbers are in range or refused");
	tap_run(real_numbers, "real numbers are finite or refused");
	tap_run(suggestions, "a mistyped word is recognized, another is not");
	return tap_done();
}
