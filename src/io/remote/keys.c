/* Whose credentials a request carries: of the environment, and of the files of the AWS command line. */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "io/remote/own.h"

enum { FILE_MOST = 1 << 20 };

/* A value goes into a header, where a line's end would begin another. */
static int value_check(const char *name, struct str value, struct err *e)
{
	for (size_t i = 0; i < value.n; i++)
		if ((uint8_t)value.p[i] < ' ' || value.p[i] == 0x7f)
			return err_set(e, ERR_USAGE, "%s: the value holds a control character", name);
	return 0;
}

/* The first of the variables that is set and not empty; *name, which may be NULL, says which. */
static struct str keys_variable(const char *const *names, const char **name)
{
	for (; *names; names++) {
		const char *value = getenv(*names);
		if (value && *value) {
			if (name)
				*name = *names;
			return str_from(value);
		}
	}
	return (struct str){"", 0};
}
#define VARIABLE(...) keys_variable((const char *const[]){__VA_ARGS__, NULL}, NULL)

/* What the AWS command line would use. The strings are of the arena. */
struct aws {
	struct str key, secret, token, region, endpoint;
	struct str who;
};

/* A line "name = value" of an INI file; comments and other lines have no name. */
static struct str ini_line(struct str line, struct str *value)
{
	while (line.n && (line.p[line.n - 1] == '\r' || line.p[line.n - 1] == '\t'))
		line.n--;
	const char *equals = line.n ? memchr(line.p, '=', line.n) : NULL;
	if (!equals || line.p[0] == '#' || line.p[0] == ';' || line.p[0] == ' ' || line.p[0] == '\t')
		return (struct str){"", 0};
	*value = str_trim((struct str){equals + 1, line.n - (size_t)(equals + 1 - line.p)});
	return str_trim((struct str){line.p, (size_t)(equals - line.p)});
}

static void aws_take(struct aws *w, struct str name, struct str value)
{
	const struct {
		const char *name;
		struct str *to;
	} known[] = {{"aws_access_key_id", &w->key}, {"aws_secret_access_key", &w->secret}, {"aws_session_token", &w->token}, {"region", &w->region}, {"endpoint_url", &w->endpoint}};
	for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
		if (str_eqc(name, known[i].name) && !known[i].to->n)
			*known[i].to = value;
}

/* Takes what a file says of a profile and is not known yet; false where the file, or the profile in it, is not there. */
static bool aws_read(struct aws *w, const char *path, struct str profile, struct arena *a)
{
	struct buf text = {0};
	struct err unread;
	bool inside = false, found = false;
	if (file_read_all(path, FILE_MOST, &text, &unread) < 0) {
		buf_release(&text);
		return false;
	}
	struct str rest = arena_str(a, buf_view(&text)), line, value;
	buf_release(&text);
	while (str_split(&rest, '\n', &line)) {
		if (line.n && line.p[0] == '[') {
			const char *end = memchr(line.p, ']', line.n);
			struct str name = str_trim((struct str){line.p + 1, end ? (size_t)(end - line.p - 1) : 0});
			if (str_skip(&name, STR("profile ")))
				name = str_trim(name);
			inside = str_eq(name, profile);
			found |= inside;
			continue;
		}
		struct str name = ini_line(line, &value);
		if (inside && name.n)
			aws_take(w, name, value);
	}
	return found;
}

static struct str aws_file(const char *variable, const char *in_home, struct arena *a)
{
	const char *given = getenv(variable), *home = getenv("HOME");
	return given && *given ? arena_str(a, str_from(given)) : arena_printf(a, "%s/.aws/%s", home ? home : "", in_home);
}

static int aws_find(struct aws *w, struct arena *a, struct err *e)
{
	struct str profile = VARIABLE("AWS_PROFILE", "AWS_DEFAULT_PROFILE");
	const bool named = profile.n > 0;
	*w = (struct aws){.key = VARIABLE("AWS_ACCESS_KEY_ID"), .secret = VARIABLE("AWS_SECRET_ACCESS_KEY"), .token = VARIABLE("AWS_SESSION_TOKEN"), .who = STR("")};
	const bool own = w->key.n && w->secret.n;
	if (own)
		w->who = STR("AWS_ACCESS_KEY_ID of the environment");
	else
		w->key = w->secret = w->token = (struct str){"", 0};
	w->region = VARIABLE("AWS_REGION", "AWS_DEFAULT_REGION");
	w->endpoint = VARIABLE("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "S3_ENDPOINT");
	profile = named ? profile : STR("default");
	struct str credentials = aws_file("AWS_SHARED_CREDENTIALS_FILE", "credentials", a), config = aws_file("AWS_CONFIG_FILE", "config", a);
	struct aws of_file = {.key = {"", 0}, .secret = {"", 0}, .token = {"", 0}, .region = w->region, .endpoint = w->endpoint};
	bool found = aws_read(&of_file, credentials.p, profile, a);
	found |= aws_read(&of_file, config.p, profile, a);
	w->region = of_file.region;
	w->endpoint = of_file.endpoint;
	if (own)
		return 0;
	if (named && !found)
		return err_set(e, ERR_USAGE, "AWS_PROFILE: no profile '" STR_FMT "' in %s", STR_ARG(profile), credentials.p);
	if (named && !(of_file.key.n && of_file.secret.n))
		return err_set(e, ERR_USAGE, "AWS_PROFILE: profile '" STR_FMT "' holds no keys: roles and single sign-on are not followed; `aws configure export-credentials --format env` gives keys", STR_ARG(profile));
	if (!of_file.key.n || !of_file.secret.n)
		return 0;
	w->key = of_file.key;
	w->secret = of_file.secret;
	w->token = of_file.token;
	w->who = arena_printf(a, "profile '" STR_FMT "' of %s", STR_ARG(profile), credentials.p);
	return 0;
}

static void ask_header(struct remote_ask *ask, const char *name, struct str value)
{
	struct buf line = {0};
	buf_printf(&line, "%s: ", name);
	buf_str(&line, value);
	buf_end_text(&line);
	struct curl_slist *more = libcurl.slist_append(ask->headers, line.p);
	buf_release(&line);
	if (!more)
		mem_fail(0);
	ask->headers = more;
}

/* "HOST" or "http://HOST/": with a scheme, and without a slash at its end. */
static struct str keys_endpoint(struct str given, bool plain, struct arena *a)
{
	while (given.n && given.p[given.n - 1] == '/')
		given.n--;
	return str_has(given, STR("://")) ? given : arena_printf(a, "%s" STR_FMT, plain ? "http://" : "https://", STR_ARG(given));
}

static bool says_no(const char *variable)
{
	const char *value = getenv(variable);
	return value && (strcmp(value, "0") == 0 || strcasecmp(value, "false") == 0 || strcasecmp(value, "no") == 0);
}

/* ENDPOINT/BUCKET/KEY, or BUCKET.HOST/KEY. */
static void put_url(struct remote_ask *ask, const struct remote_place *at, struct str endpoint, bool in_host, const char *query)
{
	const size_t scheme = (size_t)(str_find(endpoint, STR("://")) + 3);
	buf_put(&ask->url, endpoint.p, scheme);
	if (in_host) {
		buf_str(&ask->url, at->bucket);
		buf_char(&ask->url, '.');
	}
	buf_put(&ask->url, endpoint.p + scheme, endpoint.n - scheme);
	buf_char(&ask->url, '/');
	if (!in_host) {
		remote_put_encoded(&ask->url, at->bucket, false);
		if (!query)
			buf_char(&ask->url, '/');
	}
	if (query)
		buf_printf(&ask->url, "?%s", query);
	else
		remote_put_encoded(&ask->url, at->key, true);
}

static int ask_signed(struct remote_ask *ask, struct str key, struct str secret, struct str region, struct err *e)
{
	if (value_check("the access key", key, e) < 0 || value_check("the secret key", secret, e) < 0 || value_check("the region", region, e) < 0)
		return -1;
	/* S3 wants the hash of the body to be stated; libcurl states it from 8.0 on. */
	ask_header(ask, "x-amz-content-sha256", STR("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
	buf_printf(&ask->user, STR_FMT ":" STR_FMT, STR_ARG(key), STR_ARG(secret));
	buf_printf(&ask->sign, "aws:amz:" STR_FMT ":s3", STR_ARG(region));
	return 0;
}

static int ask_s3(struct remote_ask *ask, const struct remote_place *at, const char *query, struct arena *a, struct err *e)
{
	struct aws w;
	if (aws_find(&w, a, e) < 0)
		return -1;
	struct str region = at->region[0] ? str_from(at->region) : w.region.n ? w.region : STR("us-east-1");
	if (value_check("the region", region, e) < 0 || value_check("AWS_SESSION_TOKEN", w.token, e) < 0)
		return -1;
	struct str endpoint = w.endpoint.n ? keys_endpoint(w.endpoint, says_no("S3_USE_HTTPS"), a) : arena_printf(a, "https://s3." STR_FMT ".amazonaws.com", STR_ARG(region));
	/* The certificates of AWS do not cover a bucket with a dot; servers of one's own often have no names for buckets. */
	put_url(ask, at, endpoint, !w.endpoint.n && !memchr(at->bucket.p, '.', at->bucket.n), query);
	ask->no_verify = says_no("S3_VERIFY_SSL");
	if (!w.key.n)
		return 0;
	buf_str(&ask->who, w.who);
	if (w.token.n)
		ask_header(ask, "x-amz-security-token", w.token);
	return ask_signed(ask, w.key, w.secret, region, e);
}

static int ask_gs(struct remote_ask *ask, const struct remote_place *at, const char *query, struct arena *a, struct err *e)
{
	const char *name;
	struct str token = keys_variable((const char *const[]){"GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN", "GOOGLE_OAUTH_TOKEN", NULL}, &name);
	struct str key = VARIABLE("GS_ACCESS_KEY_ID"), secret = VARIABLE("GS_SECRET_ACCESS_KEY"), host = VARIABLE("STORAGE_EMULATOR_HOST");
	put_url(ask, at, keys_endpoint(host.n ? host : STR("storage.googleapis.com"), host.n > 0, a), false, query);
	/* A file that is stored packed would be unpacked on the way, and its length would not be known. */
	ask_header(ask, "Accept-Encoding", STR("gzip"));
	if (token.n) {
		buf_printf(&ask->who, "%s", name);
		if (value_check(name, token, e) < 0)
			return -1;
		ask_header(ask, "Authorization", arena_printf(a, "Bearer " STR_FMT, STR_ARG(token)));
		return 0;
	}
	if (!key.n || !secret.n)
		return 0;
	buf_cstr(&ask->who, "GS_ACCESS_KEY_ID of the environment");
	return ask_signed(ask, key, secret, STR("auto"), e);
}

/* A part of AZURE_STORAGE_CONNECTION_STRING, "Name=value;Name=value". */
static struct str connection_part(const char *name)
{
	struct str rest = VARIABLE("AZURE_STORAGE_CONNECTION_STRING"), part;
	while (rest.n && str_split(&rest, ';', &part))
		if (str_skip(&part, str_from(name)) && str_skip(&part, STR("=")))
			return part;
	return (struct str){"", 0};
}

static struct str azure_value(struct str of_environment, const char *part)
{
	return of_environment.n ? of_environment : connection_part(part);
}

/* Adds what stands behind "?", decoded as the signature wants it: "\nname:value" each. The values that this program sends hold no '+'. */
static void put_signed_query(struct buf *b, const char *query)
{
	struct str rest = str_from(query), one;
	while (rest.n && str_split(&rest, '&', &one)) {
		buf_char(b, '\n');
		for (size_t i = 0; i < one.n; i++) {
			unsigned code;
			if (one.p[i] == '%' && i + 2 < one.n && sscanf((char[]){one.p[i + 1], one.p[i + 2], 0}, "%2x", &code) == 1) {
				buf_char(b, (char)code);
				i += 2;
			} else {
				buf_char(b, one.p[i] == '=' && memchr(one.p, '=', i) == NULL ? ':' : one.p[i]);
			}
		}
	}
}

/* Authorization by an account's key: Microsoft, "Authorize with Shared Key", of the version below. */
#define AZURE_VERSION "2021-08-06"
static int ask_azure_key(struct remote_ask *ask, struct str account, struct str key, const char *method, const char *query, const char *range, struct arena *a, struct err *e)
{
	struct buf text = {0}, secret = {0}, sum = {0};
	uint8_t mac[SHA256_BYTES];
	char date[64];
	struct tm utc;
	const time_t now = time(NULL);
	strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &utc));
	struct str url = buf_view(&ask->url);
	struct str path = {url.p + str_find(url, STR("://")) + 3, 0};
	path.p = strchr(path.p, '/');
	path.n = strcspn(path.p, "?");
	buf_printf(&text, "%s\n\n\n\n\n\n\n\n\n\n\n%s\nx-ms-date:%s\nx-ms-version:" AZURE_VERSION "\n/" STR_FMT STR_FMT, method, range ? range : "", date, STR_ARG(account),
	           STR_ARG(path));
	if (query)
		put_signed_query(&text, query);
	const bool sound = base64_read(&secret, key);
	sha256_hmac(buf_view(&secret), buf_view(&text), mac);
	base64_put(&sum, mac, sizeof mac);
	if (sound) {
		ask_header(ask, "x-ms-date", str_from(date));
		ask_header(ask, "Authorization", arena_printf(a, "SharedKey " STR_FMT ":" STR_FMT, STR_ARG(account), STR_ARG(buf_view(&sum))));
	}
	buf_release(&text);
	buf_release(&secret);
	buf_release(&sum);
	return sound ? 0 : err_set(e, ERR_USAGE, "the key of the Azure storage account is no Base64");
}

static int ask_az(struct remote_ask *ask, const struct remote_place *at, const char *method, const char *query, const char *range, struct arena *a, struct err *e)
{
	struct str account = at->account.n ? at->account : azure_value(VARIABLE("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME"), "AccountName");
	struct str key = azure_value(VARIABLE("AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY"), "AccountKey");
	struct str sas = at->secret.n ? at->secret : azure_value(VARIABLE("AZURE_STORAGE_SAS_TOKEN"), "SharedAccessSignature");
	struct str endpoint = connection_part("BlobEndpoint");
	if (!account.n)
		return err_set(e, ERR_USAGE, "the storage account is not known: set AZURE_STORAGE_ACCOUNT, or AZURE_STORAGE_CONNECTION_STRING");
	if (value_check("AZURE_STORAGE_ACCOUNT", account, e) < 0 || value_check("the key of the Azure storage account", key, e) < 0 || value_check("AZURE_STORAGE_SAS_TOKEN", sas, e) < 0)
		return -1;
	put_url(ask, at, endpoint.n && !at->account.n ? keys_endpoint(endpoint, false, a) : arena_printf(a, "https://" STR_FMT ".blob.core.windows.net", STR_ARG(account)), false, query);
	buf_end_text(&ask->url);
	ask_header(ask, "x-ms-version", STR(AZURE_VERSION));
	if (sas.n) {
		str_skip(&sas, STR("?"));
		buf_printf(&ask->url, "%c" STR_FMT, query ? '&' : '?', STR_ARG(sas));
		buf_cstr(&ask->who, at->secret.n ? "the SAS token of the address" : "AZURE_STORAGE_SAS_TOKEN");
		return 0;
	}
	if (!key.n)
		return 0;
	buf_printf(&ask->who, "the key of account " STR_FMT, STR_ARG(account));
	return ask_azure_key(ask, account, key, method, query, range, a, e);
}

int remote_ask_make(struct remote_ask *ask, const struct remote_place *at, const char *method, const char *query, const char *range, struct err *e)
{
	struct arena a = {0};
	int rc = 0;
	*ask = (struct remote_ask){0};
	if (range)
		ask_header(ask, "Range", str_from(range));
	switch (at->scheme) {
	case REMOTE_S3:
		rc = ask_s3(ask, at, query, &a, e);
		break;
	case REMOTE_GS:
		rc = ask_gs(ask, at, query, &a, e);
		break;
	case REMOTE_AZ:
		rc = ask_az(ask, at, method, query, range, &a, e);
		break;
	case REMOTE_WEB:
	case REMOTE_NONE:
		buf_str(&ask->url, at->secret);
		if (!str_eq(at->secret, at->name))
			buf_cstr(&ask->who, "what the address itself holds");
		break;
	}
	if (!ask->who.n)
		buf_cstr(&ask->who, "no credentials");
	buf_end_text(&ask->url);
	buf_end_text(&ask->user);
	buf_end_text(&ask->sign);
	buf_end_text(&ask->who);
	arena_release(&a);
	return rc;
}

void remote_ask_release(struct remote_ask *ask)
{
	buf_release(&ask->url);
	buf_release(&ask->user);
	buf_release(&ask->sign);
	buf_release(&ask->who);
	libcurl.slist_free_all(ask->headers);
	*ask = (struct remote_ask){0};
}
