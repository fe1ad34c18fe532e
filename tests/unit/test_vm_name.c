// SPDX-License-Identifier: GPL-2.0-only
/* Test the names of VMs: hostile text, command lines of VMMs, control groups, files. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "random.h"
#include "tap.h"
#include "vm_name.h"

static void cleans(const char *text, const char *want)
{
	char name[VM_NAME_LEN];

	TAP_EQ(vm_name_clean(text, strlen(text), name), *want != '\0');
	TAP_STR(name, want);
}

static void cleaned(void)
{
	cleans("vm-1 (test)", "vm-1 (test)");
	cleans("Größe 東京", "Größe 東京");
	cleans("", "");
	cleans("a\033[2Jb\nc\td\177", "a\\u001b[2Jb\\u000ac\\u0009d\\u007f");
	/* C1 control, right-to-left override, zero-width space, line separator */
	cleans("a\302\23331m\342\200\256x\342\200\213y\342\200\250z",
	       "a\\u009b31m\\u202ex\\u200by\\u2028z");
	/* isolates, a joiner, Hangul fillers, a variation selector, a tag, no character */
	cleans("\342\201\246a\342\201\251\342\200\215", "\\u2066a\\u2069\\u200d");
	cleans("\343\205\244\357\276\240\341\205\237", "\\u3164\\uffa0\\u115f");
	cleans("\357\270\217\363\240\200\201\357\277\277", "\\ufe0f\\U000e0001\\uffff");
	/* names that look the same are told apart */
	cleans("web", "web");
	cleans("w\342\200\213eb", "w\\u200beb");
	/* no UTF-8: a byte alone, cut off, overlong, surrogate, too large */
	cleans("\377a\342\202", "\\udcffa\\udce2\\udc82");
	cleans("\xc0\xaf", "\\udcc0\\udcaf");
	cleans("\xed\xa0\x80", "\\udced\\udca0\\udc80");
	cleans("\xf4\x90\x80\x80", "\\udcf4\\udc90\\udc80\\udc80");
}

static void cut_between_characters(void)
{
	char text[3 * VM_NAME_LEN], name[VM_NAME_LEN];
	size_t i;

	for (i = 0; i + 3 <= sizeof(text); i += 3)
		memcpy(text + i, "京", 3);
	TAP_CHECK(vm_name_clean(text, i, name));
	TAP_EQ(strlen(name), (VM_NAME_LEN - 1) / 3 * 3);
	memset(text, 'x', sizeof(text));
	TAP_CHECK(vm_name_clean(text, sizeof(text), name));
	TAP_EQ(strlen(name), VM_NAME_LEN - 1);
	memset(text, '\1', sizeof(text));
	TAP_CHECK(vm_name_clean(text, sizeof(text), name));
	TAP_EQ(strlen(name), (VM_NAME_LEN - 1) / 6 * 6);
}

#define NAMES(text, want)	named(text, sizeof(text), want)

/* @want: NULL for none */
static void named(const char *cmdline, size_t len, const char *want)
{
	/* exactly as long, so that the sanitizer sees what is read behind it */
	char *copy = grab(len);
	char name[VM_NAME_LEN] = "";

	memcpy(copy, cmdline, len);
	TAP_EQ(vm_name_of_cmdline(copy, len, name), want != NULL);
	if (want)
		TAP_STR(name, want);
	free(copy);
}

static void command_lines(void)
{
	NAMES("/usr/bin/qemu-system-x86_64\0-name\0guest=deb12,debug-threads=on\0-S", "deb12");
	NAMES("qemu\0-m\00064\0-name\0plain", "plain");
	NAMES("qemu\0-name\0plain,process=x", "plain");
	NAMES("qemu\0-name\0debug-threads=on,guest=b", "b");
	NAMES("qemu\0-name\0a,,b,process=guest=c", "a,b");
	NAMES("qemu\0-name\0guest=a=b,process=c", "a=b");
	NAMES("crosvm\0run\0--name\0kvm", "kvm");
	/* the last one counts */
	NAMES("qemu\0-name\0one\0-name\0guest=two", "two");
	NAMES("qemu\0-name\0guest=\033]0;x\a", "\\u001b]0;x\\u0007");
	NAMES("qemu\0-name\0process=x", NULL);
	NAMES("qemu\0-name\0", NULL);
	NAMES("qemu\0-name", NULL);
	NAMES("qemu\0-names\0x", NULL);
	NAMES("", NULL);
	named("", 0, NULL);
	/* cut off within the name, and within the option */
	named("qemu\0-name\0guest=longer", 20, NULL);
	named("qemu\0-name", 9, NULL);
	named("qemu\0-name", 10, NULL);
}

static void groups(void)
{
	char name[VM_NAME_LEN];

	TAP_CHECK(vm_name_of_cgroup("0::/machine.slice/machine-qemu\\x2d12\\x2dweb\\x2d1.scope/libvirt/emulator\n",
				    name));
	TAP_STR(name, "web-1");
	TAP_CHECK(vm_name_of_cgroup("0::/machine.slice/machine-box.scope", name));
	TAP_STR(name, "box");
	TAP_CHECK(vm_name_of_cgroup("/machine-qemu\\x2dx.scope", name));
	TAP_STR(name, "qemu-x");
	TAP_CHECK(vm_name_of_cgroup("/machine-a\\x1bb\\x.scope", name));
	TAP_STR(name, "a\\u001bb\\x");
	TAP_CHECK(!vm_name_of_cgroup("/machine-.scope", name));
	TAP_CHECK(!vm_name_of_cgroup("/machine-a/b.scope", name));
	TAP_CHECK(!vm_name_of_cgroup("0::/user.slice/user-0.slice/session-1.scope", name));
	TAP_CHECK(!vm_name_of_cgroup("", name));
}

static void random_text(void)
{
	char text[300], name[VM_NAME_LEN];
	static const char some[] = "-name\0guest=,,=\\x2d/machine-.scope\xe2\x80\xae\xf0\x9f";

	rng = 7;
	for (int i = 0; i < 20000; i++) {
		size_t len = below(sizeof(text));
		char *copy = grab(len + 1), again[VM_NAME_LEN];

		for (size_t j = 0; j < len; j++)
			copy[j] = some[below(sizeof(some))];
		*name = '\0';
		vm_name_of_cmdline(copy, len, name);
		TAP_NEED(strlen(name) < VM_NAME_LEN);
		copy[len] = '\0';
		vm_name_of_cgroup(copy, name);
		vm_name_clean(copy, len, name);
		/* what is clean stays as it is */
		vm_name_clean(name, strlen(name), again);
		if (strcmp(name, again))
			TAP_STR(again, name);
		free(copy);
	}
}

static char root[64];

static void put(const char *path, const char *text, size_t len)
{
	char name[128], *slash;
	FILE *file;

	snprintf(name, sizeof(name), "%s%s", root, path);
	for (slash = name + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(name, 0700);
		*slash = '/';
	}
	file = fopen(name, "w");
	TAP_NEED(file);
	TAP_EQ(fwrite(text, 1, len, file), len);
	fclose(file);
}

#define UUID	"83b8f4f2-509f-382f-3c1e-e6bfe0fa1001"

static void files(void)
{
	static const char cmdline[] = "qemu\0-name\0guest=a";
	char name[VM_NAME_LEN], command[128], link[128];

	strcpy(root, "/tmp/test_vm_name.XXXXXX");
	TAP_NEED(mkdtemp(root));
	put("/proc/7/cmdline", cmdline, sizeof(cmdline));
	put("/proc/7/cgroup", "0::/machine-b.scope\n", 20);
	put("/proc/8/cmdline", "qemu", 5);
	put("/proc/8/cgroup", "0::/machine-b.scope\n", 20);
	put("/run/x", "", 0);
	TAP_CHECK(vm_name_of_process(root, 7, name));
	TAP_STR(name, "a");
	TAP_CHECK(vm_name_of_process(root, 8, name));
	TAP_STR(name, "b");
	TAP_CHECK(!vm_name_of_process(root, 9, name));
	TAP_STR(name, "");

	TAP_CHECK(!vgpu_name_read(root, UUID, name));
	TAP_EQ(vgpu_name_write(root, UUID, NULL), 0);
	TAP_EQ(vgpu_name_write(root, UUID, "desk 1"), 0);
	TAP_EQ(vgpu_name_write(root, UUID, "desk 2"), 0);
	TAP_CHECK(vgpu_name_read(root, UUID, name));
	TAP_STR(name, "desk 2");
	TAP_EQ(vgpu_name_write(root, UUID, ""), 0);
	TAP_CHECK(!vgpu_name_read(root, UUID, name));
	/* a link is not followed, but replaced */
	put("/target", "secret\n", 7);
	TAP_NEED((size_t)snprintf(link, sizeof(link), "%s" VGPU_NAMES "/%s", root, UUID) <
		 sizeof(link));
	TAP_EQ(symlink("../../../target", link), 0);
	TAP_CHECK(!vgpu_name_read(root, UUID, name));
	TAP_EQ(vgpu_name_write(root, UUID, "desk 3"), 0);
	TAP_CHECK(vgpu_name_read(root, UUID, name));
	TAP_STR(name, "desk 3");
	snprintf(command, sizeof(command), "grep -qx secret %s/target", root);
	TAP_EQ(system(command), 0);
	/* no file elsewhere */
	TAP_EQ(vgpu_name_write(root, "../x", "y"), -EINVAL);
	TAP_CHECK(!vgpu_name_read(root, "../../x", name));
	snprintf(command, sizeof(command), "rm -r %s", root);
	TAP_EQ(system(command), 0);
}

int main(void)
{
	tap_run(cleaned, "a name has no control characters, no turns, and is UTF-8");
	tap_run(cut_between_characters, "a long name is cut between two characters");
	tap_run(command_lines, "the name is found in the command lines of VMMs");
	tap_run(groups, "the name is found in the control groups of machines");
	tap_run(random_text, "random text is read within its bounds");
	tap_run(files, "names are read of processes, and given to vGPUs");
	return tap_done();
}
