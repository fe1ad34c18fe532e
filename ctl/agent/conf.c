// SPDX-License-Identifier: GPL-2.0-only
/* Settings of the agent, and the VM's key. */
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "complain.h"
#include "conf.h"
#include "lines.h"

/* ---- settings ---- */

static int set_services(struct conf *conf, const char *value)
{
	char text[512], *at = text, *word;

	if (snprintf(text, sizeof(text), "%s", value) >= (int)sizeof(text))
		return -EINVAL;
	conf->nr_services = 0;
	while ((word = strsep(&at, " \t"))) {
		if (!*word)
			continue;
		if (conf->nr_services == CONF_SERVICES || strlen(word) >= sizeof(*conf->services))
			return -EINVAL;
		strcpy(conf->services[conf->nr_services++], word);
	}
	return conf->nr_services ? 0 : -EINVAL;
}

/**
 * struct setting - a setting
 * @name: its name
 * @offset: where a text is
 * @size: bytes of it; 0: a duration
 */
static const struct setting {
	const char *name;
	size_t offset;
	size_t size;
} settings[] = {
	{ "vm", offsetof(struct conf, vm), 64 },
	{ "key", offsetof(struct conf, key_file), CONF_PATH_MAX },
	{ "state", offsetof(struct conf, state), CONF_PATH_MAX },
	{ "queue", offsetof(struct conf, queue), CONF_PATH_MAX },
	{ "notice", offsetof(struct conf, notice), CONF_PATH_MAX },
	{ "bind", offsetof(struct conf, bind), 0 },
	{ "report", offsetof(struct conf, report), 0 },
	{ "root", offsetof(struct conf, root), CONF_PATH_MAX },
	{ "nvml", offsetof(struct conf, nvml), CONF_PATH_MAX },
};

static int set(struct conf *conf, const struct setting *s, const char *value)
{
	char *at = (char *)conf + s->offset;
	uint32_t *seconds = (uint32_t *)(void *)at;

	if (!s->size)
		return lines_duration(value, seconds) || !*seconds ? -EINVAL : 0;
	if (strlen(value) >= s->size)
		return -EINVAL;
	strcpy(at, value);
	return 0;
}

static int take_setting(void *arg, const char *name, const char *value, char *why)
{
	struct conf *conf = arg;
	int ret = -ENOENT;

	if (!strcmp(name, "service"))
		ret = set_services(conf, value);
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
		if (!strcmp(name, settings[i].name))
			ret = set(conf, &settings[i], value);
	if (ret == -ENOENT)
		snprintf(why, 256, "unknown setting '%.64s': see mgpu-agent(1)", name);
	else if (ret)
		snprintf(why, 256, "%s: invalid value: see mgpu-agent(1)", name);
	return ret ? -EINVAL : 0;
}

static void defaults(struct conf *conf)
{
	memset(conf, 0, sizeof(*conf));
	strcpy(conf->services[0], "vsock");
	conf->nr_services = 1;
	strcpy(conf->state, CONF_STATE);
	strcpy(conf->queue, CONF_QUEUE);
	strcpy(conf->nvml, "libnvidia-ml.so.1");
	conf->bind = 60;
	conf->report = 60;
}

/* ---- the key ---- */

/* Open a file with the key; complains if others may read it. Return -ENOENT if there is none. */
static int open_key(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 || fstat(fd, &st)) {
		complain("%s: %s: the VM's key is for root only; run mgpu-agent as root", path,
			 strerror(errno));
	} else if (st.st_mode & 077) {
		complain("%s: others than its owner may use the key: chmod 600 %s", path, path);
	} else {
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -EACCES;
}

static int read_key(struct conf *conf, const char *path)
{
	char text[256], vm[64];
	int fd = open_key(path);
	ssize_t n;
	int ret;

	if (fd < 0)
		return fd;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	ret = wire_read_key(text, vm, conf->key);
	gnutls_memset(text, 0, sizeof(text));
	if (ret) {
		complain("%s: no key: it must be VM:KEY or KEY, with 64 hexadecimal digits", path);
		return ret;
	}
	if (!*conf->vm)
		strcpy(conf->vm, vm);
	if (!*conf->vm) {
		complain("the VM's name is unknown: put it before the key in %s as VM:KEY, or set vm= in %s",
			 path, CONF_FILE);
		return -EINVAL;
	}
	return 0;
}

static int find_key(struct conf *conf)
{
	char fw_cfg[2 * CONF_PATH_MAX];
	int ret;

	if (*conf->key_file) {
		ret = read_key(conf, conf->key_file);
		if (ret == -ENOENT)
			complain("%s: %s", conf->key_file, strerror(-ret));
		return ret;
	}
	snprintf(fw_cfg, sizeof(fw_cfg), "%s" CONF_KEY_FW_CFG, conf->root);
	ret = read_key(conf, CONF_KEY_FILE);
	if (ret == -ENOENT)
		ret = read_key(conf, fw_cfg);
	if (ret == -ENOENT)
		complain("the VM has no key: an administrator of the pool makes one, for %s or fw_cfg (see mgpu-agent(1))",
			 CONF_KEY_FILE);
	return ret;
}

int conf_read(struct conf *conf, const char *file, const char *service)
{
	const char *path = file ? file : CONF_FILE;
	char why[256] = "";
	int ret;

	/* A core would have the key. Programs that the agent runs leave theirs: exec resets it. */
	prctl(PR_SET_DUMPABLE, 0);
	defaults(conf);
	ret = lines_read(path, take_setting, conf, why);
	if (ret && (file || ret != -ENOENT)) {
		complain("%s: %s", path, *why ? why : strerror(-ret));
		return -1;
	}
	if (service && set_services(conf, service)) {
		complain("--service '%s': give vsock, vsock:CID:PORT or HOST:PORT, up to %d of them",
			 service, CONF_SERVICES);
		return -1;
	}
	return find_key(conf) ? -1 : 0;
}

void conf_forget(struct conf *conf)
{
	gnutls_memset(conf->key, 0, sizeof(conf->key));
}
