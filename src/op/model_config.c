#include "op/model_config.h"

#include <stdio.h>

const char model_config_how[] = "the markers of DLProf (nvidia_dlprof_pytorch_nvtx.init()), which state it";

/* The value of "key" in a JSON object of plain values. */
static bool value_in(struct str object, const char *key, struct str *value)
{
	char quoted[64];
	int n = snprintf(quoted, sizeof quoted, "\"%s\"", key);
	ptrdiff_t at = n > 0 && (size_t)n < sizeof quoted ? str_find(object, str_from(quoted)) : -1;
	if (at < 0)
		return false;
	size_t i = (size_t)at + (size_t)n;
	while (i < object.n && (object.p[i] == ' ' || object.p[i] == ':'))
		i++;
	size_t end = i;
	while (end < object.n && object.p[end] != ',' && object.p[end] != '}' && object.p[end] != ' ')
		end++;
	*value = (struct str){object.p + i, end - i};
	return end > i;
}

/* A DLProf database holds them as facts. */
static bool value_in_facts(const struct profile *p, const char *key, struct str *value)
{
	char fact[64];
	int n = snprintf(fact, sizeof fact, "model_config:%s", key);
	return n > 0 && (size_t)n < sizeof fact && profile_meta(p, fact, value);
}

bool model_config_find(const struct profile *p, const char *key, struct str *value)
{
	bool found = value_in_facts(p, key, value);
	for (uint32_t i = 0; profile_has_arg(p, ARG_MODEL_CONFIG) && i < p->arg.rows.n; i++)
		if (profile_is_arg(p, p->arg.key[i], ARG_MODEL_CONFIG))
			found |= value_in(profile_str(p, p->arg.value[i]), key, value);
	return found;
}

bool model_config_is(const struct profile *p, const char *key)
{
	struct str v;
	return model_config_find(p, key, &v) && (str_eqc(v, "true") || str_eqc(v, "True") || str_eqc(v, "1"));
}

bool model_config_any(const struct profile *p)
{
	struct str unused;
	for (uint32_t i = 0; i < p->arg.rows.n; i++)
		if (profile_is_arg(p, p->arg.key[i], ARG_MODEL_CONFIG))
			return true;
	return value_in_facts(p, "emit_nvtx", &unused);
}
