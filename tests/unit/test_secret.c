/* A command line is kept without its secrets, and whole where it has none. */
#include "test.h"

#include "base/secret.h"
#include "base/str.h"

#include <stdlib.h>

/* Words with '|' between them, for reading; NULL = stays as it is. */
static const struct {
	const char *words, *kept;
} rows[] = {
	{"python|train.py|--lr=0.1|--epochs|3", NULL},
	{"train|--api-key=abcdef|--lr=1", "train|--api-key=***|--lr=1"},
	{"train|--hf-token|abcdef|--lr|1", "train|--hf-token|***|--lr|1"},
	{"train|--hf_token|--lr|1", NULL},
	{"env|DB_PASSWORD=x|train", "env|DB_PASSWORD=*|train"},
	{"train|--apiKey=abcdef", "train|--apiKey=***"},
	{"train|--password=", NULL},
	{"train|--secret", NULL},
	{"train|-token|", NULL},
	{"train|--token|abc", "train|--token|***"},
	{"train|--eos-token=</s>|--pad_token|<pad>", NULL},
	{"train|--tokenizer=gpt2|--max-tokens=8|--num-tokens|5", NULL},
	{"report|--key-op=aten::mm|--sort-key=name|--num-key-value-heads=8", NULL},
	{"curl|-H|Authorization: Bearer abc.def-1|x", "curl|-H|Authorization: Bearer ***|x"},
	{"pip|https://me:hunter2@host/simple|http://host:80/a@b", "pip|https://me:***@host/simple|http://host:80/a@b"},
	{"db|postgres://me:p@ss#1?@host/base|x", "db|postgres://me:***@host/base|x"},
	{"curl|-H|authorization: bearer abcdefghijklmnop|x", "curl|-H|authorization: bearer ***|x"},
	{"sh|-c|export API_KEY=\"abc def\"; train --hf-token abcdef --api-key='ghi' --lr 1", "sh|-c|export API_KEY=\"***\"; train --hf-token *** --api-key='***' --lr 1"},
	{"sh|-c|train --hf-token --lr 1", NULL},
	{"env|PGPASSWORD=abc|HF_TOKEN_1=abc|AZURE_STORAGE_KEY=abc|java|-Dpassword=abc", "env|PGPASSWORD=***|HF_TOKEN_1=***|AZURE_STORAGE_KEY=***|java|-Dpassword=***"},
	{"train|--api-keys=abc|--passcode=abc|--pass|abc|--cookies=abc", "train|--api-keys=***|--passcode=***|--pass|***|--cookies=***"},
	{"train|--passes|3|--bypass=1|--compass|n", NULL},
	{"curl|-H|X-Api-Key: abc|-H|Authorization: token abcdef", "curl|-H|X-Api-Key: ***|-H|Authorization: token ***"},
	{"post|{\"api_key\": \"abc\", \"lr\": 1}|{\"token\":\"abc\"}|password: abc", "post|{\"api_key\": \"***\", \"lr\": 1}|{\"token\":\"***\"}|password: ***"},
	{"uvicorn|app.auth:app|--max_tokens|8|--stop-token: 1", NULL},
	{"login|hf_abcdefghijklmnop|hf_short|shelf_abcdefghijklmnop", "login|***|hf_short|shelf_abcdefghijklmnop"},
	{"sh|-c|KEY=sk-abcdefghijklmnop train", "sh|-c|KEY=*** train"},
	{"sh|-c|WANDB_API_KEY=abcdef train", "sh|-c|WANDB_API_KEY=***"},
	{"sh|-c|cd x && API_KEY=abcdef train --token=ghijkl 3", "sh|-c|cd x && API_KEY=*** train --token=*** 3"},
	{"get|https://host/x?token=abcdef&page=2", "get|https://host/x?token=***&page=2"},
	{"", NULL},
	{"a||b", NULL},
	{"=", NULL},
	{"--access-key|abcdef|--secret-key|ghijkl", "--access-key|***|--secret-key|***"},
};

static size_t with_nuls(const char *words, char *to)
{
	size_t n = strlen(words);
	for (size_t i = 0; i < n; i++)
		to[i] = words[i] == '|' ? 0 : words[i];
	return n;
}

static void test_rows(void **state)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char words[256], wanted[256];
		size_t n = with_nuls(rows[i].words, words), want = with_nuls(rows[i].kept ? rows[i].kept : rows[i].words, wanted);
		n = secret_mask(words, n);
		for (size_t k = 0; k < n; k++)
			words[k] = words[k] ? words[k] : '|';
		words[n] = 0;
		assert_string_equal(words, rows[i].kept ? rows[i].kept : rows[i].words);
		assert_int_equal(n, want);
	}
}

/* No size of a part of a name, and no cut of a line, leads out of the words. */
static void test_cuts(void **state)
{
	char line[] = "env\0A_VERY_LONG_NAME_OF_A_VERY_LONG_TOKEN=x\0--averyveryverylongpartofaname-key\0y\0https://a:b@c\0Bearer d\0hf_abcdefghijklmnopq\0sh --token \"a b\" x --key: \"\0{\"api_key\": \"";
	for (size_t n = 0; n <= sizeof line; n++) {
		char *copy = malloc(n + 1); /* plain, so that a sanitizer sees its ends */
		memcpy(copy, line, n);
		assert_in_range(secret_mask(copy, n), 0, n);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_cuts)};
	return RUN_TESTS(tests);
}
