// Runs the function that begins at byte ENTRY of FOLDER/code on FOLDER/a, b, c and arguments, and
// writes c back. Each of them ends at a page that nobody may touch.
//   run-kernel FOLDER ENTRY
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096L

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static FILE *file(const char *folder, const char *name, const char *mode) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *opened = fopen(path, mode);
    if (!opened) fail(path);
    return opened;
}

static char *operand(const char *folder, const char *name, long *bytes) {
    FILE *in = file(folder, name, "rb");
    fseek(in, 0, SEEK_END);
    *bytes = ftell(in);
    rewind(in);
    long whole = (*bytes + PAGE - 1) / PAGE * PAGE;
    char *start = mmap(NULL, whole + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) fail("mmap");
    if (mprotect(start + whole, PAGE, PROT_NONE)) fail("mprotect");
    char *at = start + whole - *bytes;
    if (fread(at, 1, *bytes, in) != (size_t)*bytes) fail(name);
    fclose(in);
    return at;
}

int main(int count, char **arguments) {
    if (count != 3) {
        fprintf(stderr, "expected FOLDER ENTRY\n");
        return 2;
    }
    const char *folder = arguments[1];
    long a_bytes, b_bytes, c_bytes, arguments_bytes, code_bytes;
    char *a = operand(folder, "a", &a_bytes);
    char *b = operand(folder, "b", &b_bytes);
    char *c = operand(folder, "c", &c_bytes);
    char *more = operand(folder, "arguments", &arguments_bytes);
    char *text = operand(folder, "code", &code_bytes);
    long whole = (code_bytes + PAGE - 1) / PAGE * PAGE;
    char *code = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) fail("mmap");
    memcpy(code, text, code_bytes);
    if (mprotect(code, whole, PROT_READ | PROT_EXEC)) fail("mprotect");
    void (*kernel)(void *, void *, void *, void *) = (void *)(code + atol(arguments[2]));
    kernel(a, b, c, more);
    FILE *out = file(folder, "c", "wb");
    if (fwrite(c, 1, c_bytes, out) != (size_t)c_bytes) fail("c");
    return fclose(out) ? 1 : 0;
}
