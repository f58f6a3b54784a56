// SPDX-License-Identifier: GPL-2.0-only
/*
 * Answers requests for statistics. Each request and each answer is a line of JSON, as in
 * rust/scx_stats. The errno of an answer is 0, or a positive Linux errno with an error text.
 */
#include <ctype.h>
#include <errno.h>
#include <json.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define TARGET "top"

/* Maximum nesting of a request. No valid request is nested more deeply. */
#define DEPTH_MAX 8

/* Return the line {"errno":@err,"args":{"resp":@payload}}, or NULL if there is no memory. Takes
 * ownership of @payload. */
static char *answer_line(int err, struct json_object *payload)
{
	struct json_object *answer = json_object_new_object(), *args = json_object_new_object();
	char *line = NULL;

	json_object_object_add(args, "resp", payload);
	json_object_object_add(answer, "errno", json_object_new_int(err));
	json_object_object_add(answer, "args", args);
	if (asprintf(&line, "%s\n",
		     json_object_to_json_string_ext(answer, JSON_C_TO_STRING_PLAIN)) < 0)
		line = NULL;
	json_object_put(answer);
	return line;
}

static char *refusal(int err, const char *why)
{
	return answer_line(err, json_object_new_string(why));
}

/* Return the string member @name of an object; NULL if it is missing or not a string. */
static const char *string_of(struct json_object *object, const char *name)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(object, name, &value);
	return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
}

/* Describe the statistics, so that clients can show and convert them. */
static struct json_object *describe(const struct scx_sched *sched)
{
	struct json_object *all = json_object_new_object(), *of = json_object_new_object();
	struct json_object *fields = json_object_new_object(), *user = json_object_new_object();
	char text[64];

	for (const struct scx_stat *stat = sched->stats; stat->name; stat++) {
		struct json_object *field = json_object_new_object();

		json_object_object_add(field, "datum", json_object_new_string("u64"));
		json_object_object_add(field, "desc", json_object_new_string(stat->desc));
		if (stat->kind == SCX_STAT_COUNTER) {
			struct json_object *counter = json_object_new_object();

			json_object_object_add(counter, "_counter", json_object_new_string("true"));
			json_object_object_add(field, "user", counter);
		}
		json_object_object_add(fields, stat->name, field);
	}
	snprintf(text, sizeof(text), "%s_", sched->name + strlen("scx_"));
	json_object_object_add(user, "_om_prefix", json_object_new_string(text));
	snprintf(text, sizeof(text), "Statistics of %s", sched->name);
	json_object_object_add(of, "name", json_object_new_string("Metrics"));
	json_object_object_add(of, "top", json_object_new_string("true"));
	json_object_object_add(of, "desc", json_object_new_string(text));
	json_object_object_add(of, "user", user);
	json_object_object_add(of, "fields", fields);
	json_object_object_add(all, "Metrics", of);
	return all;
}

/* Return the values @now as an object. Counters are reduced by their values in @before. A counter
 * below that value has restarted from 0 in a new generation, and is not reduced. */
static struct json_object *values(const struct scx_sched *sched, const void *now,
				  const void *before)
{
	struct json_object *all = json_object_new_object();

	for (const struct scx_stat *stat = sched->stats; stat->name; stat++) {
		uint64_t value = scx_stat_value(stat, now), base = scx_stat_value(stat, before);

		if (stat->kind == SCX_STAT_COUNTER && base <= value)
			value -= base;
		json_object_object_add(all, stat->name, json_object_new_uint64(value));
	}
	return all;
}

static char *answer_stats(const struct scx_sched *sched, struct json_object *args, const void *now,
			  void *before)
{
	static const char zero[SCX_STATS_MAX_BYTES];
	const char *target = string_of(args, "target"), *total = string_of(args, "total");
	char *line;

	if (target && strcmp(target, TARGET))
		return refusal(EINVAL, "unknown target: there is only 'top'");
	if (total && strcmp(total, "true") && strcmp(total, "false"))
		return refusal(EINVAL, "total is neither true nor false");
	if (!now)
		return refusal(EAGAIN, "the scheduler is restarting");
	if (total && !strcmp(total, "true"))
		return answer_line(0, values(sched, now, zero));
	line = answer_line(0, values(sched, now, before));
	memcpy(before, now, sched->stats_size);
	return line;
}

static bool are_strings(struct json_object *args)
{
	json_object_object_foreach(args, name, value)
	{
		if (name && !json_object_is_type(value, json_type_string))
			return false;
	}
	return true;
}

static char *answer(const struct scx_sched *sched, struct json_object *request, const void *now,
		    void *before)
{
	const char *name = string_of(request, "req");
	struct json_object *args = NULL;

	if (json_object_object_get_ex(request, "args", &args) &&
	    (!json_object_is_type(args, json_type_object) || !are_strings(args)))
		return refusal(EINVAL, "args is not an object of strings");
	if (!name)
		return refusal(EINVAL, "not a request: req is missing or not a string");
	if (!strcmp(name, "stats_meta"))
		return answer_line(0, describe(sched));
	if (!strcmp(name, "stats"))
		return answer_stats(sched, args, now, before);
	return refusal(EINVAL, "unknown request: there are stats and stats_meta");
}

char *scx_answer(const struct scx_sched *sched, const char *line, size_t len, const void *now,
		 void *before)
{
	struct json_tokener *tokener = json_tokener_new_ex(DEPTH_MAX);
	struct json_object *request;
	char *text;

	if (!tokener)
		return NULL;
	while (len && isspace((unsigned char)line[len - 1]))
		len--;
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	request = json_tokener_parse_ex(tokener, line, len);
	if (json_object_is_type(request, json_type_object) &&
	    json_tokener_get_parse_end(tokener) == len)
		text = answer(sched, request, now, before);
	else
		text = refusal(EINVAL, "not a request: not a JSON object");
	json_object_put(request);
	json_tokener_free(tokener);
	return text;
}

char *scx_answer_too_long(void)
{
	return refusal(EMSGSIZE, "the request is too long");
}
