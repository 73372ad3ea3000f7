#include "sorts.h"

#define ELEMENT         uint32_t
#define LESS(a, b)      (*(a) < *(b))
#define NAME(x)         numbers_##x
#define ORDER_PARAMETER
#define ORDER_ARGUMENT
#include "sorts_template.h"

#define ELEMENT         struct record
#define LESS(a, b)      before((a), (b))
#define NAME(x)         records_##x
#define ORDER_PARAMETER , before_fn *before
#define ORDER_ARGUMENT  , before
#include "sorts_template.h"
