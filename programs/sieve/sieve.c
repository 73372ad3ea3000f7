/* Primes below 200, sorted four ways through a table of functions.
 *
 * Small, but with something of everything a trace has to follow: loops,
 * taken and untaken branches, direct calls, calls through a table of function
 * pointers, recursion, a jump table, and a trap that returns.
 */

typedef unsigned int u32;

enum { LIMIT = 200, COUNT = 46, ROUNDS = 8 };

static unsigned char composite[LIMIT];
static u32 primes[COUNT];
static u32 work[COUNT];

static u32 sieve(u32 *out)
{
    u32 found = 0;
    for (u32 n = 2; n < LIMIT; n++) {
        if (composite[n])
            continue;
        out[found++] = n;
        for (u32 m = n * n; m < LIMIT; m += n)
            composite[m] = 1;
    }
    return found;
}

static void swap(u32 *a, u32 *b)
{
    u32 t = *a;
    *a = *b;
    *b = t;
}

static void insertion_sort(u32 *a, u32 n)
{
    for (u32 i = 1; i < n; i++)
        for (u32 j = i; j > 0 && a[j - 1] > a[j]; j--)
            swap(&a[j - 1], &a[j]);
}

static void shell_sort(u32 *a, u32 n)
{
    for (u32 gap = n / 2; gap > 0; gap /= 2)
        for (u32 i = gap; i < n; i++)
            for (u32 j = i; j >= gap && a[j - gap] > a[j]; j -= gap)
                swap(&a[j - gap], &a[j]);
}

static void quick_sort(u32 *a, u32 n)
{
    if (n < 2)
        return;
    u32 pivot = a[n / 2], lo = 0, hi = n - 1;
    for (;;) {
        while (a[lo] < pivot)
            lo++;
        while (a[hi] > pivot)
            hi--;
        if (lo >= hi)
            break;
        swap(&a[lo++], &a[hi--]);
    }
    quick_sort(a, lo);
    quick_sort(a + lo, n - lo);
}

static void sift(u32 *a, u32 root, u32 n)
{
    for (u32 child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && a[child] < a[child + 1])
            child++;
        if (a[root] >= a[child])
            return;
        swap(&a[root], &a[child]);
    }
}

static void heap_sort(u32 *a, u32 n)
{
    for (u32 i = n / 2; i-- > 0;)
        sift(a, i, n);
    while (n-- > 1) {
        swap(&a[0], &a[n]);
        sift(a, 0, n);
    }
}

typedef void sort_fn(u32 *, u32);

static sort_fn *const sorts[] = { insertion_sort, shell_sort, quick_sort, heap_sort };

/* One order of disturbance per round; a jump table at -O2. */
__attribute__((noinline)) static u32 disturbed(u32 order, u32 i, u32 n)
{
    switch (order) {
    case 0: return n - 1 - i;
    case 1: return (i * 7) % n;
    case 2: return i ^ 1;
    case 3: return (i * 11 + 5) % n;
    case 4: return (i + n / 2) % n;
    case 5: return i < n / 2 ? 2 * i : 2 * (i - n / 2) + 1;
    case 6: return (i * 5) % n;
    default: return i;
    }
}

u32 traps;

int main(void)
{
    u32 n = sieve(primes);
    u32 errors = n != COUNT;
    for (u32 s = 0; s < ROUNDS; s++) {
        for (u32 i = 0; i < n; i++)
            work[i] = primes[disturbed(s, i, n)];
        sorts[s % 4](work, n);
        for (u32 i = 0; i < n; i++)
            errors += work[i] != primes[i];
        __asm__ volatile("ecall" ::: "memory");
    }
    errors += traps != ROUNDS;
    return (int)errors;
}
