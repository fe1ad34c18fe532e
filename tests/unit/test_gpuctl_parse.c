// SPDX-License-Identifier: GPL-2.0-only
/* gpuctl's values and its suggestions for mistyped words. */
#include <errno.h>

#include "gpuctl.h"
#include "tap.h"

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
	char longest[200];

	TAP_STR(suggest("vgup", words), "vgpu");
	TAP_STR(suggest("vgpus", words), "vgpu");
	TAP_STR(suggest("mon", words), "monitor");
	TAP_STR(suggest("montior", words), "monitor");
	TAP_STR(suggest("wieght", keys), "weight");
	TAP_STR(suggest("fsp", keys), "fps");
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
	tap_run(fps_no_number, "what is no number of frames per second is refused");
	tap_run(whole_numbers, "whole numbers are in range or refused");
	tap_run(real_numbers, "real numbers are finite or refused");
	tap_run(suggestions, "a mistyped word is recognized, another is not");
	return tap_done();
}
