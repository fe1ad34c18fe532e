// SPDX-License-Identifier: GPL-2.0-only
/*
 * EDID of the virtual monitor.
 *
 * Source: VESA Enhanced EDID Standard, release A, revision 2 (EDID 1.4);
 * timings as VESA CVT 1.2 reduced blanking.
 */
#include <linux/string.h>

#include "mgpu.h"

#define EDID_BLOCK	128
#define REFRESH_HZ	60
#define H_BLANK		160
#define H_FRONT		48
#define H_SYNC		32
#define V_BLANK		35
#define V_FRONT		3
#define V_SYNC		6
#define DPI		96

static u32 edid_millimetres(u32 pixels)
{
	return pixels * 254 / (DPI * 10);
}

static void detailed_timing(u8 *d, u32 width, u32 height)
{
	u32 clock = (width + H_BLANK) * (height + V_BLANK) * REFRESH_HZ /
		    10000;	/* 10 kHz */
	u32 mm_w = edid_millimetres(width), mm_h = edid_millimetres(height);

	d[0] = clock;
	d[1] = clock >> 8;
	d[2] = width;
	d[3] = H_BLANK & 0xff;
	d[4] = (width >> 8) << 4 | H_BLANK >> 8;
	d[5] = height;
	d[6] = V_BLANK & 0xff;
	d[7] = (height >> 8) << 4 | V_BLANK >> 8;
	d[8] = H_FRONT;
	d[9] = H_SYNC;
	d[10] = (V_FRONT & 0xf) << 4 | (V_SYNC & 0xf);
	d[11] = 0;
	d[12] = mm_w;
	d[13] = mm_h;
	d[14] = (mm_w >> 8) << 4 | mm_h >> 8;
	d[15] = 0;
	d[16] = 0;
	d[17] = 0x1a;	/* digital separate sync, hsync positive */
}

static void edid_text(u8 *d, u8 tag, const char *s)
{
	size_t len = min_t(size_t, strlen(s), 13);

	memset(d, 0, 5);
	d[3] = tag;
	memset(d + 5, ' ', 13);
	memcpy(d + 5, s, len);
	if (len < 13)
		d[5 + len] = '\n';
}

/**
 * mgpu_edid - write an EDID block
 * @edid: EDID_BLOCK bytes
 * @width: width of the preferred mode, MGPU_MODE_MIN to 3840 pixels
 * @height: height of the preferred mode, MGPU_MODE_MIN to 2160 rows
 * @serial: serial number
 *
 * Guests ignore smaller modes as errors.  Larger modes may not fit: EDID has 12 bits
 * for each size and 16 bits for the clock.
 */
void mgpu_edid(u8 *edid, u32 width, u32 height, u32 serial)
{
	static const u8 header[] = { 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0 };
	/* sRGB primaries and white point */
	static const u8 colour[] = { 0xee, 0x91, 0xa3, 0x54, 0x4c, 0x99, 0x26,
				     0x0f, 0x50, 0x54 };
	const u16 vendor = ('M' - '@') << 10 | ('G' - '@') << 5 | ('P' - '@');
	u8 sum = 0;
	int i;

	memset(edid, 0, EDID_BLOCK);
	memcpy(edid, header, sizeof(header));
	edid[8] = vendor >> 8;
	edid[9] = vendor & 0xff;
	edid[10] = 1;			/* product code */
	edid[12] = serial;
	edid[13] = serial >> 8;
	edid[14] = serial >> 16;
	edid[15] = serial >> 24;
	edid[16] = 0xff;		/* the next byte is the model year */
	edid[17] = 2026 - 1990;
	edid[18] = 1;
	edid[19] = 4;
	edid[20] = 0xa5;		/* digital, 8 bits a colour */
	edid[21] = edid_millimetres(width) / 10;
	edid[22] = edid_millimetres(height) / 10;
	edid[23] = 120;			/* gamma 2.2 */
	edid[24] = 0x06;		/* sRGB; the preferred mode is native */
	memcpy(edid + 25, colour, sizeof(colour));
	memset(edid + 38, 0x01, 16);	/* no standard timings */

	detailed_timing(edid + 54, width, height);
	edid_text(edid + 72, 0xfc, "mgpu");
	edid[93] = 0x10;		/* dummy descriptors */
	edid[111] = 0x10;

	for (i = 0; i < EDID_BLOCK - 1; i++)
		sum += edid[i];
	edid[127] = -sum;
}
