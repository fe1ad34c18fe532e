// SPDX-License-Identifier: GPL-2.0-only
/*
 * Move large data: with calls that wait and that do not, in rectangles and images, more at a time
 * than shared memory holds, and with errors.  With a number: how many GB/s buffers of so many KiB
 * are written and read at, medians of 9.
 */
#include "common.h"

#define MIB	(1u << 20)
#define N	(2u * MIB)
#define MANY	80u

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(size_t size)
{
	cl_mem m = cl_buffer(0, size, NULL);
	uint8_t *p = malloc(size);
	double rates[2][9], us;

	memset(p, 1, size);
	for (unsigned int i = 0; i < 18; i++) {
		us = now_us();
		for (size_t done = 0; done < 64u * MIB; done += size) {
			if (i % 2)
				CL(clEnqueueReadBuffer(queue, m, CL_TRUE, 0, size, p, 0, NULL,
						       NULL));
			else
				CL(clEnqueueWriteBuffer(queue, m, CL_TRUE, 0, size, p, 0, NULL,
							NULL));
		}
		CL(clFinish(queue));
		rates[i % 2][i / 2] = 64 * MIB / (now_us() - us) / 1e3;
	}
	qsort(rates[0], 9, sizeof(double), compare);
	qsort(rates[1], 9, sizeof(double), compare);
	printf("written %.2f GB/s, read %.2f GB/s\n", rates[0][4], rates[1][4]);
	free(p);
	CL(clReleaseMemObject(m));
}

static void wait_and_do_not(cl_mem m, uint8_t *p, uint8_t *q)
{
	cl_event events[MANY];
	cl_int status;

	CL(clEnqueueWriteBuffer(queue, m, CL_TRUE, 0, N, p, 0, NULL, NULL));
	CL(clEnqueueReadBuffer(queue, m, CL_TRUE, 0, N, q, 0, NULL, NULL));
	printf("waited %d\n", memcmp(p, q, N));
	/* Its memory is the program's again when the call returns. */
	memset(q, 5, N);
	CL(clEnqueueWriteBuffer(queue, m, CL_TRUE, 0, N, q, 0, NULL, NULL));
	memset(q, 6, N);
	CL(clEnqueueReadBuffer(queue, m, CL_FALSE, 0, N, q, 0, NULL, events));
	CL(clWaitForEvents(1, events));
	printf("later %016llx\n", (unsigned long long)digest(q, N));
	CL(clReleaseEvent(events[0]));

	for (unsigned int i = 0; i < MANY; i++) {
		CL(clEnqueueWriteBuffer(queue, m, CL_FALSE, i * 4096u, N / 2, p + i * 4096u, 0,
					NULL, &events[i]));
	}
	CL(clWaitForEvents(MANY, events));
	for (unsigned int i = 0; i < MANY; i++)
		CL(clReleaseEvent(events[i]));
	for (unsigned int i = 0; i < MANY; i++)
		CL(clEnqueueReadBuffer(queue, m, CL_FALSE, i * 4096u, N / 2, q + i * 4096u, 0,
				       NULL, NULL));
	CL(clFinish(queue));
	printf("many %d\n", memcmp(p, q, N / 2 + (MANY - 1) * 4096u));

	status = clEnqueueWriteBuffer(queue, m, CL_TRUE, 1, N, p, 0, NULL, NULL);
	printf("too long %d\n", status);
	status = clEnqueueReadBuffer(queue, m, CL_FALSE, 1, N, q, 0, NULL, NULL);
	printf("too long %d\n", status);
}

static void rectangles(cl_mem m, uint8_t *p, uint8_t *q)
{
	const size_t at[3] = { 16, 3, 1 }, host[3] = { 32, 2, 0 }, size[3] = { 1024, 200, 2 };

	memset(q, 0, N);
	CL(clEnqueueWriteBufferRect(queue, m, CL_FALSE, at, host, size, 2048, 2048 * 256, 1536,
				    1536 * 300, p, 0, NULL, NULL));
	CL(clEnqueueReadBufferRect(queue, m, CL_TRUE, at, host, size, 2048, 2048 * 256, 1800,
				   1800 * 210, q, 0, NULL, NULL));
	printf("rectangle %016llx\n", (unsigned long long)digest(q, N));
}

static void images(uint8_t *p, uint8_t *q)
{
	const size_t at[3] = { 8, 8, 0 }, size[3] = { 256, 256, 1 };
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	const cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 300, .image_height = 300,
	};
	cl_mem image = clCreateImage(context, 0, &format, &desc, NULL, &err);

	good(err, "clCreateImage");
	memset(q, 0, N);
	CL(clEnqueueWriteImage(queue, image, CL_FALSE, at, size, 2000, 0, p, 0, NULL, NULL));
	CL(clEnqueueReadImage(queue, image, CL_TRUE, at, size, 1100, 0, q, 0, NULL, NULL));
	printf("image %016llx\n", (unsigned long long)digest(q, N));
	CL(clReleaseMemObject(image));
}

int main(int argc, char **argv)
{
	uint8_t *p = malloc(N), *q = malloc(N);
	cl_mem m;

	cl_open(NULL, 0);
	if (argc > 1) {
		measure(strtoul(argv[1], NULL, 10) << 10);
	} else {
		for (size_t i = 0; i < N; i++)
			p[i] = (uint8_t)random_number();
		m = cl_buffer(0, N, NULL);
		wait_and_do_not(m, p, q);
		rectangles(m, p, q);
		CL(clReleaseMemObject(m));
		images(p, q);
	}
	cl_close();
	free(p);
	free(q);
	return 0;
}
