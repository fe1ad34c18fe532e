// SPDX-License-Identifier: GPL-2.0-only
/*
 * SQLite: files that are not right, and disks that fail or lose power.
 *
 * A shim of SQLite's own VFS counts writes and syncs.  At a number that the test chooses it
 * fails, for once or from then on, or the power goes: every write since the file's last sync is
 * undone, and the process ends.
 */
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "store.h"
#include "tap.h"
#include "test_pool_store.h"

/* ---- the shim ---- */

enum fault { FAULT_NONE, FAULT_FULL, FAULT_IO, FAULT_KILL, FAULT_POWER };

/**
 * struct undo - a write that is not on disk yet
 * @file: that it was to
 * @size: of the file before
 */
struct undo {
	struct undo *next;
	sqlite3_file *file;
	sqlite3_int64 offset, size;
	int length;
	unsigned char *old;
};

static struct {
	sqlite3_vfs vfs, *real;
	sqlite3_io_methods methods;
	enum fault fault;
	unsigned int at, times, count;
	struct undo *undo;
} shim;

/**
 * struct shim_file - a file
 * @real: the file of the real VFS, behind this struct
 */
struct shim_file {
	sqlite3_file base;
	sqlite3_file real[];
};

static sqlite3_file *real_of(sqlite3_file *file)
{
	return ((struct shim_file *)file)->real;
}

/* Put back what a file had before writes that were not synced, the last one first. */
static void power_off(void)
{
	for (struct undo *u = shim.undo; u; u = u->next) {
		if (u->length)
			u->file->pMethods->xWrite(u->file, u->old, u->length, u->offset);
		u->file->pMethods->xTruncate(u->file, u->size);
	}
	_exit(9);
}

static int fault(void)
{
	if (shim.fault == FAULT_NONE || ++shim.count < shim.at)
		return SQLITE_OK;
	switch (shim.fault) {
	case FAULT_POWER:
		power_off();
		break;
	case FAULT_KILL:
		kill(getpid(), SIGKILL);
		break;
	default:
		break;
	}
	if (shim.count >= shim.at + shim.times)
		return SQLITE_OK;
	return shim.fault == FAULT_FULL ? SQLITE_FULL : SQLITE_IOERR;
}

static void remember(sqlite3_file *file, int length, sqlite3_int64 offset)
{
	struct undo *u;

	if (shim.fault != FAULT_POWER)
		return;
	u = calloc(1, sizeof(*u));
	u->file = file;
	u->offset = offset;
	file->pMethods->xFileSize(file, &u->size);
	u->length = offset >= u->size ? 0 : length;
	if (offset < u->size && u->size - offset < length)
		u->length = (int)(u->size - offset);
	u->old = calloc(1, (size_t)length);
	if (u->length)
		file->pMethods->xRead(file, u->old, u->length, offset);
	u->next = shim.undo;
	shim.undo = u;
}

static void forget(sqlite3_file *file)
{
	struct undo **at = &shim.undo, *u;

	while ((u = *at)) {
		if (u->file != file) {
			at = &u->next;
			continue;
		}
		*at = u->next;
		free(u->old);
		free(u);
	}
}

static int shim_write(sqlite3_file *file, const void *data, int length, sqlite3_int64 offset)
{
	sqlite3_file *real = real_of(file);
	int rc = fault();

	if (rc)
		return rc;
	remember(real, length, offset);
	return real->pMethods->xWrite(real, data, length, offset);
}

/* The disk is the shim's: what it need not undo is synced, and thousands of real syncs are slow. */
static int shim_sync(sqlite3_file *file, int flags)
{
	int rc = fault();

	(void)flags;
	if (!rc)
		forget(real_of(file));
	return rc;
}

/* Its effect is not undone: SQLite truncates only what it no longer needs. */
static int shim_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	sqlite3_file *real = real_of(file);

	forget(real);
	return real->pMethods->xTruncate(real, size);
}

static int shim_close(sqlite3_file *file)
{
	sqlite3_file *real = real_of(file);

	forget(real);
	return real->pMethods->xClose(real);
}

static int shim_read(sqlite3_file *file, void *data, int length, sqlite3_int64 offset)
{
	return real_of(file)->pMethods->xRead(real_of(file), data, length, offset);
}

static int shim_size(sqlite3_file *file, sqlite3_int64 *size)
{
	return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static int shim_lock(sqlite3_file *file, int lock)
{
	return real_of(file)->pMethods->xLock(real_of(file), lock);
}

static int shim_unlock(sqlite3_file *file, int lock)
{
	return real_of(file)->pMethods->xUnlock(real_of(file), lock);
}

static int shim_reserved(sqlite3_file *file, int *reserved)
{
	return real_of(file)->pMethods->xCheckReservedLock(real_of(file), reserved);
}

static int shim_control(sqlite3_file *file, int op, void *arg)
{
	return real_of(file)->pMethods->xFileControl(real_of(file), op, arg);
}

static int shim_sector(sqlite3_file *file)
{
	return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int shim_device(sqlite3_file *file)
{
	return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int shim_map(sqlite3_file *file, int page, int size, int extend, void volatile **map)
{
	return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, map);
}

static int shim_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
	return real_of(file)->pMethods->xShmLock(real_of(file), offset, n, flags);
}

static void shim_barrier(sqlite3_file *file)
{
	real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int shim_unmap(sqlite3_file *file, int delete)
{
	return real_of(file)->pMethods->xShmUnmap(real_of(file), delete);
}

static int shim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
	int rc = shim.real->xOpen(shim.real, name, real_of(file), flags, out);

	(void)vfs;
	file->pMethods = real_of(file)->pMethods ? &shim.methods : NULL;
	return rc;
}

/* Other functions of a VFS do not look at which one they are called with. */
static void use_shim(void)
{
	shim.real = sqlite3_vfs_find(NULL);
	shim.vfs = *shim.real;
	shim.vfs.zName = "shim";
	shim.vfs.pNext = NULL;
	shim.vfs.szOsFile = (int)sizeof(struct shim_file) + shim.real->szOsFile;
	shim.vfs.xOpen = shim_open;
	shim.methods = (sqlite3_io_methods){
		.iVersion = 2, .xClose = shim_close, .xRead = shim_read, .xWrite = shim_write,
		.xTruncate = shim_truncate, .xSync = shim_sync, .xFileSize = shim_size,
		.xLock = shim_lock, .xUnlock = shim_unlock, .xCheckReservedLock = shim_reserved,
		.xFileControl = shim_control, .xSectorSize = shim_sector,
		.xDeviceCharacteristics = shim_device, .xShmMap = shim_map,
		.xShmLock = shim_shm_lock, .xShmBarrier = shim_barrier, .xShmUnmap = shim_unmap,
	};
	sqlite3_vfs_register(&shim.vfs, 1);
}

static void set_fault(enum fault kind, unsigned int at, unsigned int times)
{
	shim.fault = kind;
	shim.at = at;
	shim.times = times;
	shim.count = 0;
}

/* ---- work ---- */

#define GROUPS	12	/* transactions of a run */

/* Every group is whole; those in @done are there, and those in @failed not. */
static bool groups_are_whole(struct store *store, const bool *done, const bool *failed)
{
	unsigned int counts[GROUPS];
	bool good = count_groups(store, counts, GROUPS);

	for (unsigned int i = 0; i < GROUPS; i++) {
		good = good && !(done[i] && !counts[i]);
		good = good && !(failed && failed[i] && counts[i]);
	}
	return good;
}

/* Answers of a run whose disk fails at one write or sync. */
static bool run_on_bad_disk(enum fault kind, unsigned int at, unsigned int times, bool *reached)
{
	bool done[GROUPS] = { false }, failed[GROUPS] = { false }, good;
	struct store *store = open_new();

	*reached = false;
	if (!store)
		return false;
	set_fault(kind, at, times);
	for (unsigned int i = 0; i < GROUPS; i++) {
		int rc = store_group(store, i);

		done[i] = !rc;
		failed[i] = rc;
		*reached |= rc;
		if (rc && rc != -EIO)
			return false;
	}
	set_fault(FAULT_NONE, 0, 0);
	/* the same service goes on, and the next one sees the same */
	good = groups_are_whole(store, done, failed);
	store_close(store);
	store = open_again();
	good = good && store && groups_are_whole(store, done, failed);
	store_close(store);
	return good;
}

static void disk_fails(enum fault kind, unsigned int times)
{
	unsigned int last = 0;
	bool reached = true;

	use_shim();
	for (unsigned int at = 1; at < 2000 && (reached || at < last + 20); at++) {
		if (!TAP_CHECK(run_on_bad_disk(kind, at, times, &reached))) {
			tap_diag("write %u", at);
			return;
		}
		if (reached)
			last = at;
	}
	tap_diag("%u writes or syncs failed in turn", last);
	TAP_CHECK(last >= GROUPS);
}

static void disk_full_once(void)
{
	disk_fails(FAULT_FULL, 1);
}

static void disk_full(void)
{
	disk_fails(FAULT_FULL, 100000);
}

static void disk_broken(void)
{
	disk_fails(FAULT_IO, 1);
}

static void disk_full_says_so(void)
{
	struct store *store;

	use_shim();
	store = open_new();
	TAP_NEED(store);
	set_fault(FAULT_FULL, 1, 100000);
	TAP_EQ(store_group(store, 0), -EIO);
	if (!TAP_CHECK(strstr(store_error(store), "make room")))
		tap_diag("%s", store_error(store));
	set_fault(FAULT_NONE, 0, 0);
	TAP_EQ(store_group(store, 0), 0);
	store_close(store);
}

/* A process writes and tells each group that is done, until it ends in the middle. */
static bool dies(enum fault kind, unsigned int at, bool *done)
{
	int tell[2], status;
	unsigned char group;
	pid_t pid;

	if (!make_empty() || pipe(tell))
		return false;
	/* the database has the name of this process */
	setenv("POOL_STORE_PATH", database_url(), 1);
	pid = fork();
	if (!pid) {
		char text[POOL_TEXT_MAX];
		struct store *store;

		set_fault(kind, at, 1);
		if (store_open(getenv("POOL_STORE_PATH"), &store, text))
			_exit(1);
		for (group = 0; group < GROUPS; group++)
			if (store_group(store, group) || write(tell[1], &group, 1) != 1)
				_exit(1);
		store_close(store);
		_exit(0);
	}
	close(tell[1]);
	while (read(tell[0], &group, 1) == 1)
		done[group] = true;
	close(tell[0]);
	waitpid(pid, &status, 0);
	return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void process_dies(enum fault kind, unsigned int step)
{
	unsigned int died = 0;

	use_shim();
	for (unsigned int at = 1; at < 5000; at += step) {
		bool done[GROUPS] = { false };
		bool in_time = dies(kind, at, done);
		struct store *store = open_again();

		TAP_NEED(store);
		if (!TAP_CHECK(groups_are_whole(store, done, NULL))) {
			tap_diag("write %u", at);
			store_close(store);
			return;
		}
		TAP_EQ(store_group(store, GROUPS), 0);
		store_close(store);
		if (!in_time)
			break;
		died++;
	}
	tap_diag("ended at %u writes or syncs", died);
	TAP_CHECK(died >= 20);
}

static void killed(void)
{
	process_dies(FAULT_KILL, 1);
}

static void power_lost(void)
{
	process_dies(FAULT_POWER, 1);
}

/* ---- files ---- */

static int open_path(const char *path, char *text)
{
	struct store *store;
	int rc = store_open(path, &store, text);

	if (!rc)
		store_close(store);
	return rc;
}

static bool write_file(const char *path, const char *data, mode_t mode)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, mode);
	bool good = fd >= 0 && write(fd, data, strlen(data)) == (ssize_t)strlen(data) &&
		    !fchmod(fd, mode);

	close(fd);
	return good;
}

static void file_is_private(void)
{
	char text[POOL_TEXT_MAX], path[200];
	struct store *store;
	struct stat st;

	umask(0);
	unlink(database_path());
	store = open_again();
	TAP_NEED(store);
	TAP_EQ(store_group(store, 0), 0);
	for (int i = 0; i < 4; i++) {
		static const char *const ends[] = { "", "-wal", "-shm", "-lock" };

		snprintf(path, sizeof(path), "%s%s", database_path(), ends[i]);
		TAP_EQ(stat(path, &st), 0);
		TAP_EQ(st.st_mode & 07777, 0600);
	}
	store_close(store);
	TAP_EQ(chmod(database_path(), 0604), 0);
	TAP_EQ(open_path(database_path(), text), -EIO);
	TAP_CHECK(strstr(text, "chmod"));
}

static void names_of_one_file(void)
{
	char text[POOL_TEXT_MAX], link[150], url[200];
	struct store *store = open_new();

	TAP_NEED(store);
	snprintf(link, sizeof(link), "%s-link", database_path());
	TAP_EQ(symlink(database_path(), link), 0);
	TAP_EQ(open_path(link, text), -EBUSY);
	TAP_EQ(chdir(database_folder()), 0);
	snprintf(url, sizeof(url), "sqlite:./%s", strrchr(database_path(), '/') + 1);
	TAP_EQ(open_path(url, text), -EBUSY);
	TAP_EQ(open_path(strrchr(database_path(), '/') + 1, text), -EBUSY);
	store_close(store);
	TAP_EQ(open_path(url, text), 0);
	TAP_EQ(open_path("sqlite:new.db", text), 0);
	TAP_EQ(access("new.db", R_OK), 0);
}

static void wrong_files(void)
{
	char text[POOL_TEXT_MAX], path[200];

	TAP_EQ(open_path("sqlite:", text), -EIO);
	TAP_EQ(open_path("sqlite::memory:", text), -EIO);
	TAP_CHECK(strstr(text, "sqlite:PATH"));
	snprintf(path, sizeof(path), "%s/none/x.db", database_folder());
	TAP_EQ(open_path(path, text), -EIO);
	TAP_CHECK(strstr(text, "make the folder"));
	TAP_EQ(open_path(database_folder(), text), -EIO);
	TAP_CHECK(strstr(text, "no regular file"));
	snprintf(path, sizeof(path), "%s/text", database_folder());
	memset(text, 'x', 300);
	text[300] = '\0';
	TAP_CHECK(write_file(path, text, 0600));
	TAP_EQ(open_path(path, text), -EIO);
	if (!TAP_CHECK(strstr(text, "restore a backup")))
		tap_diag("%s", text);
	TAP_NEED(make_empty());
	TAP_EQ(sql_by_hand("CREATE TABLE photos (a INT)"), 0);
	TAP_EQ(open_path(database_path(), text), -EIO);
	TAP_CHECK(strstr(text, "another program"));
}

static void others_may_read(void)
{
	struct store *store = open_new();

	TAP_NEED(store);
	TAP_EQ(store_group(store, 0), 0);
	TAP_EQ(sql_by_hand("SELECT count(*) FROM pool_request"), 0);
	TAP_EQ(store_group(store, 1), 0);
	store_close(store);
}

int main(void)
{
	unsetenv("POOL_STORE_SERVER");
	if (database_init())
		return 1;
	tap_run(file_is_private, "the files are their owner's");
	tap_run(names_of_one_file, "a file has one lock, by all of its names");
	tap_run(wrong_files, "a file that is not right is refused");
	tap_run(others_may_read, "other programs can read meanwhile");
	tap_run(disk_full_says_so, "a full disk is told, and work goes on with room");
	tap_run_within(disk_full_once, "a write fails, each in turn", 300);
	tap_run_within(disk_full, "the disk is full from each write on", 300);
	tap_run_within(disk_broken, "a disk fails at each write or sync", 300);
	tap_run_within(killed, "a process killed at each write loses no transaction", 300);
	tap_run_within(power_lost, "power lost at each write loses no transaction", 300);
	database_exit();
	return tap_done();
}
