/* SPDX-License-Identifier: GPL-2.0-only */
/* Conditions that mgpud's settings meet, from each source. */
#ifndef TESTS_FUZZ_SETTINGS_H
#define TESTS_FUZZ_SETTINGS_H

#include <json-c/json.h>

#include "fuzz.h"
#include "config/table.h"

static void check_settings(const struct config *c)
{
	const struct settings *set = &c->set;
	struct settings_error err;

	FUZZ_ASSERT(set->allocator && c->preempt.ops);
	for (const struct mgpud_setting *s = mgpud_settings; s->key; s++) {
		struct json_object *value = table_value(c, s);

		if (mgpud_setting_is_number(s))
			FUZZ_ASSERT(json_object_get_double(value) >= s->min &&
				    json_object_get_double(value) <= s->max);
		json_object_put(value);
	}
	FUZZ_ASSERT(!settings_check(set, &err));
	FUZZ_ASSERT(!sla_check(&set->sla));
	FUZZ_ASSERT(set->nr_vgpus <= SETTINGS_VGPUS_MAX);
	for (size_t i = 0; i < set->nr_vgpus; i++) {
		FUZZ_ASSERT(!sla_check(&set->vgpus[i].sla));
		FUZZ_ASSERT(strlen(set->vgpus[i].uuid) == SAMPLE_UUID_LEN - 1);
		if (i)
			FUZZ_ASSERT(strcmp(set->vgpus[i - 1].uuid, set->vgpus[i].uuid) < 0);
	}
	FUZZ_ASSERT(!preempt_param_check(&c->preempt.param));
}

#endif /* TESTS_FUZZ_SETTINGS_H */
