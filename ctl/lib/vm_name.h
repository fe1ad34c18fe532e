/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of VMs and of vGPUs, for people. A user of the VMM chose the name of a VM, so that a
 * name selects nothing, and is cleaned before it is printed.
 */
#ifndef LIBMGPU_VM_NAME_H
#define LIBMGPU_VM_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VM_NAME_LEN	64	/* of a name, bytes, with the end */
#define VGPU_NAMES	"/run/mgpu/names"

/**
 * text_clean() - make a text that can be printed on any terminal
 * @text: text that is not trusted, any bytes
 * @len: its length, bytes
 * @clean: result, UTF-8: control characters, characters that are invisible or change the
 *	direction of text, and bytes that are no UTF-8 are escaped (\u001b, \u200b,
 *	\U000e0001, \udcff for the byte 0xff); cut off between two characters or escapes
 * @size: size of @clean, bytes; at least 1
 *
 * Return: whether @clean has a character.
 */
bool text_clean(const char *text, size_t len, char *clean, size_t size);

/* The same of a name that a user of the VMM chose. */
bool vm_name_clean(const char *text, size_t len, char name[VM_NAME_LEN]);

/**
 * vm_name_of_cmdline() - find the name in the command line of a VMM
 * @cmdline: /proc/PID/cmdline: words, each with its '\0'; the last may be cut off
 * @len: its length, bytes
 * @name: result
 *
 * Knows QEMU's "-name NAME" and "-name guest=NAME,...", which libvirt writes, too, and
 * crosvm's "--name NAME".
 *
 * Return: whether there is one.
 */
bool vm_name_of_cmdline(const char *cmdline, size_t len, char name[VM_NAME_LEN]);

/**
 * vm_name_of_cgroup() - find the name in a control group of systemd-machined
 * @path: path of the group, as in /machine.slice/machine-qemu\x2d1\x2dvm.scope/emulator
 * @name: result: name of the machine, without libvirt's "qemu-1-"
 *
 * Return: whether the group belongs to a machine.
 */
bool vm_name_of_cgroup(const char *path, char name[VM_NAME_LEN]);

/**
 * vm_name_of_process() - find the name of the VM that a process runs
 * @root: prefix of /proc, "" for the machine
 * @tgid: the process
 * @name: result, "" if there is none
 *
 * The command line counts more than the control group.
 *
 * Return: whether there is one.
 */
bool vm_name_of_process(const char *root, uint32_t tgid, char name[VM_NAME_LEN]);

/**
 * vgpu_name_read() - read the name that was given to a vGPU
 * @root: prefix of /run, "" for the machine
 * @uuid: UUID of the vGPU
 * @name: result, "" if there is none
 *
 * Return: whether there is one.
 */
bool vgpu_name_read(const char *root, const char *uuid, char name[VM_NAME_LEN]);

/**
 * vgpu_name_write() - give a vGPU a name
 * @root: prefix of /run, "" for the machine
 * @uuid: UUID of the vGPU
 * @name: its name, NULL or "" for none
 *
 * The name is in a file of VGPU_NAMES, and lasts until the host is booted again, as vGPUs do.
 *
 * Return: 0 or -errno.
 */
int vgpu_name_write(const char *root, const char *uuid, const char *name);

#endif /* LIBMGPU_VM_NAME_H */
