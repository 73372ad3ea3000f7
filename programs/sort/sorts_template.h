/* Four sorting algorithms, to be included once per kind of element.
 *
 *   ELEMENT             the type of an element
 *   LESS(a, b)          whether *a goes before *b
 *   NAME(algorithm)     the name of a function
 *   ORDER_PARAMETER     what the functions take besides, and hand on
 *   ORDER_ARGUMENT
 *
 * All are undefined again at the end.
 */

/* Stable. The one to use for a handful of elements. */
NOINLINE void NAME(insertion)(ELEMENT *a, size_t n ORDER_PARAMETER)
{
    for (size_t i = 1; i < n; i++) {
        ELEMENT moved = a[i];
        size_t j = i;
        for (; j > 0 && LESS(&moved, &a[j - 1]); j--)
            a[j] = a[j - 1];
        a[j] = moved;
    }
}

/* Lets the element at `root` sink until no child goes after it. */
NOINLINE static void NAME(sift_down)(ELEMENT *a, size_t root, size_t n ORDER_PARAMETER)
{
    ELEMENT moved = a[root];
    for (size_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && LESS(&a[child], &a[child + 1]))
            child++;
        if (!LESS(&moved, &a[child]))
            break;
        a[root] = a[child];
    }
    a[root] = moved;
}

/* Never worse than n log n, and needs no further memory. */
NOINLINE void NAME(heap)(ELEMENT *a, size_t n ORDER_PARAMETER)
{
    for (size_t i = n / 2; i-- > 0;)
        NAME(sift_down)(a, i, n ORDER_ARGUMENT);
    while (n-- > 1) {
        ELEMENT greatest = a[0];
        a[0] = a[n];
        a[n] = greatest;
        NAME(sift_down)(a, 0, n ORDER_ARGUMENT);
    }
}

/* Stable. `spare` has room for half of the elements. */
NOINLINE void NAME(merge)(ELEMENT *a, ELEMENT *spare, size_t n ORDER_PARAMETER)
{
    if (n < 2)
        return;
    size_t half = n / 2;
    NAME(merge)(a, spare, half ORDER_ARGUMENT);
    NAME(merge)(a + half, spare, n - half ORDER_ARGUMENT);

    for (size_t i = 0; i < half; i++)
        spare[i] = a[i];
    size_t left = 0, right = half, out = 0;
    while (left < half && right < n)
        a[out++] = LESS(&a[right], &spare[left]) ? a[right++] : spare[left++];
    while (left < half)
        a[out++] = spare[left++];
}

/* Recurses into the smaller part and loops over the greater, so that the stack
 * stays shallow; leaves short parts to insertion sort.
 */
NOINLINE void NAME(quick)(ELEMENT *a, size_t n ORDER_PARAMETER)
{
    while (n > 12) {
        ELEMENT pivot = a[n / 2];
        size_t low = 0, high = n - 1;
        for (;;) {
            while (LESS(&a[low], &pivot))
                low++;
            while (LESS(&pivot, &a[high]))
                high--;
            if (low >= high)
                break;
            ELEMENT swapped = a[low];
            a[low++] = a[high];
            a[high--] = swapped;
        }
        size_t rest = n - low;
        if (low < rest) {
            NAME(quick)(a, low ORDER_ARGUMENT);
            a += low;
            n = rest;
        } else {
            NAME(quick)(a + low, rest ORDER_ARGUMENT);
            n = low;
        }
    }
    NAME(insertion)(a, n ORDER_ARGUMENT);
}

#undef ELEMENT
#undef LESS
#undef NAME
#undef ORDER_PARAMETER
#undef ORDER_ARGUMENT
