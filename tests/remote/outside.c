// SPDX-License-Identifier: GPL-2.0-only
/* Calls that are not remoted. */
#include "common.h"

int main(void)
{
	cl_device_svm_capabilities svm = 1;
	cl_mem pipe;

	cl_open(NULL, 0);
	CL(clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof(svm), &svm, NULL));
	printf("SVM %u\n", (unsigned int)svm);
	for (int i = 0; i < 2; i++) {
		pipe = clCreatePipe(context, 0, 4, 4, NULL, &err);
		printf("pipe: %s, error %d\n", pipe ? "made" : "none", err);
		printf("SVM: %s\n", clSVMAlloc(context, 0, 64, 0) ? "made" : "none");
	}
	cl_close();
	return 0;
}
