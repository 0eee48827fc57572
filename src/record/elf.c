#include "record/elf.h"

#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_BYTES (UINT64_C(1) << 30) /* of a table */

struct elf_function_ {
	uint64_t address, bytes;
	uint32_t name;
};

struct elf {
	Elf64_Phdr *segment;
	unsigned n_segments;
	struct elf_function_ *function;   /* by address */
	size_t n, cap;
	char *names;
	uint64_t names_bytes;
};

struct elf_reader {
	int fd;
	uint64_t bytes;
};

/* NULL when the file does not have these bytes. The caller frees it. */
static void *elf_take(const struct elf_reader *r, uint64_t at, uint64_t n)
{
	if (!n || n > MOST_BYTES || at > r->bytes || n > r->bytes - at)
		return NULL;
	char *p = mem_alloc(n, 1);
	uint64_t have = 0;
	for (ssize_t got; have < n && (got = pread(r->fd, p + have, n - have, (off_t)(at + have))) > 0;)
		have += (uint64_t)got;
	if (have == n)
		return p;
	mem_free(p);
	return NULL;
}

static void take_functions(struct elf *f, const Elf64_Sym *s, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		unsigned type = ELF64_ST_TYPE(s[i].st_info);
		if ((type != STT_FUNC && type != STT_GNU_IFUNC) || s[i].st_shndx == SHN_UNDEF || s[i].st_name >= f->names_bytes)
			continue;
		MEM_PUSH(f->function, f->n, f->cap, (struct elf_function_){s[i].st_value, s[i].st_size, s[i].st_name});
	}
}

/* Of all symbols, else of those for the dynamic linker. */
static void read_symbols(struct elf *f, const struct elf_reader *r, const Elf64_Shdr *section, unsigned n)
{
	static const Elf64_Word kinds[] = {SHT_SYMTAB, SHT_DYNSYM};
	for (int k = 0; k < 2 && !f->n; k++)
		for (unsigned i = 0; i < n && !f->n; i++) {
			const Elf64_Shdr *s = &section[i];
			if (s->sh_type != kinds[k] || s->sh_link >= n)
				continue;
			Elf64_Sym *symbols = elf_take(r, s->sh_offset, s->sh_size);
			mem_free(f->names);
			f->names_bytes = section[s->sh_link].sh_size;
			f->names = elf_take(r, section[s->sh_link].sh_offset, f->names_bytes);
			if (symbols && f->names) {
				f->names[f->names_bytes - 1] = 0;
				take_functions(f, symbols, s->sh_size / sizeof *symbols);
			}
			mem_free(symbols);
		}
}

/* By address; of those at one address, that with a size comes last, as the search takes the last. */
static int elf_compare(const void *x, const void *y)
{
	const struct elf_function_ *a = x, *b = y;
	return COMPARE(a->address, b->address) ?: COMPARE(a->bytes, b->bytes) ?: COMPARE(a->name, b->name);
}

static struct elf *elf_read_file(const struct elf_reader *r)
{
	Elf64_Ehdr *h = elf_take(r, 0, sizeof *h);
	struct elf *f = NULL;
	if (h && memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 && h->e_ident[EI_CLASS] == ELFCLASS64 && h->e_phentsize == sizeof(Elf64_Phdr) &&
	    h->e_shentsize == sizeof(Elf64_Shdr)) {
		f = NEW(struct elf);
		f->segment = elf_take(r, h->e_phoff, (uint64_t)h->e_phnum * sizeof *f->segment);
		f->n_segments = f->segment ? h->e_phnum : 0;
		Elf64_Shdr *section = elf_take(r, h->e_shoff, (uint64_t)h->e_shnum * sizeof *section);
		if (section)
			read_symbols(f, r, section, h->e_shnum);
		mem_free(section);
		if (f->n)
			qsort(f->function, f->n, sizeof *f->function, elf_compare);
	}
	mem_free(h);
	return f;
}

struct elf *elf_open(const char *path)
{
	struct stat st;
	struct elf_reader r = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
	if (r.fd < 0)
		return NULL;
	struct elf *f = NULL;
	if (fstat(r.fd, &st) == 0 && S_ISREG(st.st_mode)) {
		r.bytes = (uint64_t)st.st_size;
		f = elf_read_file(&r);
	}
	close(r.fd);
	return f;
}

void elf_close(struct elf *f)
{
	if (!f)
		return;
	mem_free(f->segment);
	mem_free(f->function);
	mem_free(f->names);
	mem_free(f);
}

static bool to_address(const struct elf *f, uint64_t offset, uint64_t *address)
{
	for (unsigned i = 0; i < f->n_segments; i++) {
		const Elf64_Phdr *s = &f->segment[i];
		if (s->p_type == PT_LOAD && offset >= s->p_offset && offset - s->p_offset < s->p_filesz) {
			*address = s->p_vaddr + (offset - s->p_offset);
			return true;
		}
	}
	return false;
}

struct str elf_function(const struct elf *f, uint64_t offset)
{
	uint64_t a;
	if (!to_address(f, offset, &a))
		return (struct str){0};
	size_t from = FIRST_WHERE(i, 0, f->n, f->function[i].address > a);
	/* Without a size it reaches to the next. */
	const struct elf_function_ *at = from ? &f->function[from - 1] : NULL;
	return at && (!at->bytes || a - at->address < at->bytes) ? str_from(f->names + at->name) : (struct str){0};
}
