//! Hand-chosen cases in every mode, with their flags, as a second
//! implementation confirmed them.

use super::super::*;

/// Operation, format, mode, operands, result and flags, numbers in
/// hexadecimal; operands that are not used are 0.
const VECTORS: &str = "
# sums: zeros and their signs
add f32 0 80000000 0 0 -> 0 0
add f32 2 80000000 0 0 -> 80000000 0
add f32 0 80000000 80000000 0 -> 80000000 0
sub f32 2 3f800000 3f800000 0 -> 80000000 0
sub f32 0 3f800000 3f800000 0 -> 0 0
sub f64 3 3ff0000000000000 3ff0000000000000 0 -> 0 0
add f16 2 3c00 bc00 0 -> 8000 0

# sums: ties and neighbours of ties
add f32 0 3f800000 33800000 0 -> 3f800000 1
add f32 4 3f800000 33800000 0 -> 3f800001 1
add f32 0 3f800001 33800000 0 -> 3f800002 1
add f32 0 3f800000 33800001 0 -> 3f800001 1
add f32 1 3f800000 33800001 0 -> 3f800000 1
add f32 3 3f800000 1 0 -> 3f800001 1
add f32 2 3f800000 80000001 0 -> 3f7fffff 1
add f64 0 3ff0000000000000 3ca0000000000000 0 -> 3ff0000000000000 1
add f64 4 3ff0000000000000 3ca0000000000000 0 -> 3ff0000000000001 1
add f64 2 3ff0000000000000 bca0000000000000 0 -> 3fefffffffffffff 0
add f64 3 bff0000000000000 8000000000000001 0 -> bff0000000000000 1
add f16 0 6800 3c00 0 -> 6800 1
add f16 4 6800 3c00 0 -> 6801 1

# sums: subnormals are exact, the top overflows
sub f32 0 800000 1 0 -> 7fffff 0
add f64 0 fffffffffffff 1 0 -> 10000000000000 0
add f32 0 7f7fffff 7f7fffff 0 -> 7f800000 5
add f32 1 7f7fffff 7f7fffff 0 -> 7f7fffff 5
add f32 2 7f7fffff 7f7fffff 0 -> 7f7fffff 5
add f32 3 ff7fffff ff7fffff 0 -> ff7fffff 5
add f32 2 ff7fffff ff7fffff 0 -> ff800000 5
add f32 0 7f7fffff 73000000 0 -> 7f800000 5
add f32 0 7f7fffff 72ffffff 0 -> 7f7fffff 1
add f32 3 7f7fffff 1 0 -> 7f800000 5
add f16 0 7bff 4c00 0 -> 7c00 5

# sums: infinities and NaNs
add f64 0 7ff0000000000000 fff0000000000000 0 -> 7ff8000000000000 10
sub f64 0 7ff0000000000000 fff0000000000000 0 -> 7ff0000000000000 0
add f64 0 7ff8000000000001 3ff0000000000000 0 -> 7ff8000000000000 0
add f64 0 7ff0000000000001 3ff0000000000000 0 -> 7ff8000000000000 10
sub f16 0 fe00 7c00 0 -> 7e00 0

# products
mul f32 0 3f800001 3f800001 0 -> 3f800002 1
mul f32 3 3f800001 3f800001 0 -> 3f800003 1
mul f64 0 3ff8000000000000 3ff5555555555555 0 -> 4000000000000000 1
mul f32 0 80000000 40000000 0 -> 80000000 0
mul f32 0 7f800000 80000000 0 -> 7fc00000 10
mul f32 0 7f800000 bf800000 0 -> ff800000 0
mul f16 0 7bff 7bff 0 -> 7c00 5
mul f16 1 fbff 7bff 0 -> fbff 5

# products: tiny, and whether they are so after rounding
mul f32 0 800000 3f7fffff 0 -> 800000 3
mul f32 0 800001 3f7fffff 0 -> 800000 1
mul f32 0 ffffff 3f000000 0 -> 800000 3
mul f32 1 ffffff 3f000000 0 -> 7fffff 3
mul f32 3 ffffff 3f000000 0 -> 800000 3
mul f32 0 800001 3f7ffffe 0 -> 800000 1
mul f32 3 800001 3f7ffffe 0 -> 800000 1
mul f64 0 10000000000000 3fefffffffffffff 0 -> 10000000000000 3
mul f64 0 1fffffffffffff 3fe0000000000000 0 -> 10000000000000 3
mul f64 0 10000000000001 3feffffffffffffe 0 -> 10000000000000 1
mul f64 3 10000000000001 3feffffffffffffe 0 -> 10000000000000 1
mul f64 0 1 3fe0000000000000 0 -> 0 3
mul f64 4 1 3fe0000000000000 0 -> 1 3
mul f64 3 1 1 0 -> 1 3
mul f64 2 1 8000000000000001 0 -> 8000000000000001 3
mul f16 0 400 3bff 0 -> 400 3
mul f16 0 7ff 3800 0 -> 400 3
mul f16 3 401 3bfe 0 -> 400 1

# quotients
div f32 0 3f800000 40400000 0 -> 3eaaaaab 1
div f32 3 3f800000 40400000 0 -> 3eaaaaab 1
div f32 2 bf800000 40400000 0 -> beaaaaab 1
div f64 0 4024000000000000 4008000000000000 0 -> 400aaaaaaaaaaaab 1
div f64 4 3ff0000000000000 4024000000000000 0 -> 3fb999999999999a 1
div f32 0 3f800000 80000000 0 -> ff800000 8
div f32 0 0 80000000 0 -> 7fc00000 10
div f32 0 7f800000 0 0 -> 7f800000 0
div f32 0 7f800000 7f800000 0 -> 7fc00000 10
div f32 0 3f800000 ff800000 0 -> 80000000 0
div f32 0 7f7fffff 1 0 -> 7f800000 5
div f32 1 7f7fffff 1 0 -> 7f7fffff 5
div f64 0 1 4000000000000000 0 -> 0 3
div f64 0 3 4000000000000000 0 -> 2 3
div f64 0 1fffffffffffff 4000000000000000 0 -> 10000000000000 3
div f64 0 ffffffffffffe 3feffffffffffffe 0 -> fffffffffffff 3
div f16 0 1 4000 0 -> 0 3
div f16 4 1 4000 0 -> 1 3

# roots
sqrt f32 0 40000000 0 0 -> 3fb504f3 1
sqrt f32 3 40000000 0 0 -> 3fb504f4 1
sqrt f64 0 4010000000000000 0 0 -> 4000000000000000 0
sqrt f64 0 1 0 0 -> 1e60000000000000 0
sqrt f64 2 3fefffffffffffff 0 0 -> 3fefffffffffffff 1
sqrt f64 0 8000000000000000 0 0 -> 8000000000000000 0
sqrt f64 0 8000000000000001 0 0 -> 7ff8000000000000 10
sqrt f64 0 7ff0000000000000 0 0 -> 7ff0000000000000 0
sqrt f64 0 fff0000000000000 0 0 -> 7ff8000000000000 10
sqrt f16 0 4400 0 0 -> 4000 0

# fused
mul_add f64 0 3ff0000000000001 3ff0000000000001 bff0000000000002 -> 3970000000000000 0
mul_add f64 0 3ff0000000000001 3fefffffffffffff bff0000000000000 -> 3c9ffffffffffffe 0
mul_add f64 0 3ff0000000000001 3ff0000000000001 1 -> 3ff0000000000002 1
mul_add f64 3 3ff0000000000000 3ff0000000000000 1 -> 3ff0000000000001 1
mul_add f64 0 3ff8000000000000 3ff0000000000001 3ca0000000000000 -> 3ff8000000000002 0
mul_add f32 0 7f800000 0 7fc00000 -> 7fc00000 10
mul_add f32 0 0 ff800000 7f800001 -> 7fc00000 10
mul_add f32 0 7f800000 3f800000 ff800000 -> 7fc00000 10
mul_add f32 0 7f7fffff 40000000 ff7fffff -> 7f7fffff 0
mul_add f32 0 7f7fffff 40000000 ff800000 -> ff800000 0
mul_add f32 0 3f800000 3f800000 bf800000 -> 0 0
mul_add f32 2 3f800000 3f800000 bf800000 -> 80000000 0
mul_add f32 2 0 3f800000 80000000 -> 80000000 0
mul_add f32 0 1 1 80000000 -> 0 3
mul_add f32 0 1 80000001 800000 -> 800000 1
mul_add f32 1 1 80000001 800000 -> 7fffff 3
mul_add f32 0 3f800001 3f7ffffe 33800000 -> 3f800000 1
mul_add f16 0 3c01 3c01 9000 -> 3c02 1
mul_add f16 0 7fff 3c00 7d00 -> 7e00 10

# minimum, maximum, comparison
min f32 0 0 80000000 0 -> 80000000 0
max f32 0 80000000 0 0 -> 0 0
min f32 0 7fc00001 3f800000 0 -> 3f800000 0
max f32 0 3f800000 7f800001 0 -> 3f800000 10
min f32 0 7fc00001 ffc00002 0 -> 7fc00000 0
max f16 0 7e01 7d01 0 -> 7e00 10
eq f64 0 0 8000000000000000 0 -> 1 0
eq f64 0 7ff8000000000000 7ff8000000000000 0 -> 0 0
eq f64 0 7ff0000000000001 3ff0000000000000 0 -> 0 10
lt f64 0 8000000000000000 0 0 -> 0 0
lt f64 0 7ff8000000000000 3ff0000000000000 0 -> 0 10
le f64 0 8000000000000000 0 0 -> 1 0
le f64 0 bff0000000000000 c000000000000000 0 -> 0 0
classify f32 0 ff800000 0 0 -> 1 0
classify f32 0 80000001 0 0 -> 4 0
classify f32 0 80000000 0 0 -> 8 0
classify f32 0 7fffff 0 0 -> 20 0
classify f32 0 7f800001 0 0 -> 100 0
classify f32 0 ffc00000 0 0 -> 200 0

# between formats
to_f32 f64 0 3690000000000000 0 0 -> 0 3
to_f32 f64 4 3690000000000000 0 0 -> 1 3
to_f32 f64 3 1 0 0 -> 1 3
to_f32 f64 0 380fffffefffffff 0 0 -> 800000 3
to_f32 f64 0 380ffffff0000000 0 0 -> 800000 1
to_f32 f64 0 47efffffefffffff 0 0 -> 7f7fffff 1
to_f32 f64 0 47effffff0000000 0 0 -> 7f800000 5
to_f32 f64 1 47f0000000000000 0 0 -> 7f7fffff 5
to_f32 f64 0 7ff0000000000001 0 0 -> 7fc00000 10
to_f64 f32 0 1 0 0 -> 36a0000000000000 0
to_f64 f32 0 ff800001 0 0 -> 7ff8000000000000 10
to_f16 f32 0 477fefff 0 0 -> 7bff 1
to_f16 f32 0 477ff000 0 0 -> 7c00 5
to_f16 f32 0 33000000 0 0 -> 0 3
to_f16 f32 0 33000001 0 0 -> 1 3

# to integers
to_i32 f64 0 41dfffffffdfffff 0 0 -> 7fffffff 1
to_i32 f64 0 41dfffffffe00000 0 0 -> 7fffffff 10
to_i32 f64 1 41dfffffffe00000 0 0 -> 7fffffff 1
to_i32 f64 1 c1e00000001fffff 0 0 -> 80000000 1
to_i32 f64 2 c1e00000001fffff 0 0 -> 80000000 10
to_i32 f32 0 7fc00000 0 0 -> 7fffffff 10
to_i32 f32 0 ff800000 0 0 -> 80000000 10
to_u32 f32 0 bf000000 0 0 -> 0 1
to_u32 f32 2 bf000000 0 0 -> 0 10
to_u32 f32 1 bf7fffff 0 0 -> 0 1
to_u32 f32 0 bf800000 0 0 -> 0 10
to_u32 f64 3 41efffffffe00001 0 0 -> ffffffff 10
to_i64 f64 0 43e0000000000000 0 0 -> 7fffffffffffffff 10
to_i64 f64 0 c3e0000000000000 0 0 -> 8000000000000000 0
to_i64 f64 0 c3e0000000000001 0 0 -> 8000000000000000 10
to_u64 f64 0 43efffffffffffff 0 0 -> fffffffffffff800 0
to_u64 f64 0 43f0000000000000 0 0 -> ffffffffffffffff 10
to_u64 f32 0 ffc00000 0 0 -> ffffffffffffffff 10
to_i64 f32 0 40200000 0 0 -> 2 1
to_i64 f32 4 40200000 0 0 -> 3 1
to_u64 f16 0 7c00 0 0 -> ffffffffffffffff 10
to_i32 f16 3 1 0 0 -> 1 1

# from integers
from_i32 f32 0 80000000 0 0 -> cf000000 0
from_i32 f32 0 1000001 0 0 -> 4b800000 1
from_i32 f32 4 1000001 0 0 -> 4b800001 1
from_u32 f32 3 ffffffff 0 0 -> 4f800000 1
from_u32 f64 0 ffffffff 0 0 -> 41efffffffe00000 0
from_i64 f64 2 ffdfffffffffffff 0 0 -> c340000000000001 1
from_i64 f64 0 8000000000000000 0 0 -> c3e0000000000000 0
from_u64 f64 1 ffffffffffffffff 0 0 -> 43efffffffffffff 1
from_u64 f64 0 ffffffffffffffff 0 0 -> 43f0000000000000 1
from_i32 f16 0 ffff 0 0 -> 7c00 5
from_i32 f16 0 ffef 0 0 -> 7bff 1
from_u32 f16 1 ffffffff 0 0 -> 7bff 5
from_i64 f64 2 0 0 0 -> 0 0
";

fn run<F: Format>(name: &str, o: [u64; 3], r: Round, f: &mut Flags) -> u64 {
    let [a, b, c] = o;
    match name {
        "add" => add::<F>(a, b, r, f),
        "sub" => sub::<F>(a, b, r, f),
        "mul" => mul::<F>(a, b, r, f),
        "div" => div::<F>(a, b, r, f),
        "sqrt" => sqrt::<F>(a, r, f),
        "mul_add" => mul_add::<F>(a, b, c, r, f),
        "min" => min::<F>(a, b, f),
        "max" => max::<F>(a, b, f),
        "eq" => eq::<F>(a, b, f).into(),
        "lt" => lt::<F>(a, b, f).into(),
        "le" => le::<F>(a, b, f).into(),
        "classify" => classify::<F>(a).into(),
        "to_f16" => convert::<F, F16>(a, r, f),
        "to_f32" => convert::<F, F32>(a, r, f),
        "to_f64" => convert::<F, F64>(a, r, f),
        "to_i32" => u64::from(to_i32::<F>(a, r, f) as u32),
        "to_u32" => to_u32::<F>(a, r, f).into(),
        "to_i64" => to_i64::<F>(a, r, f) as u64,
        "to_u64" => to_u64::<F>(a, r, f),
        "from_i32" => from_i32::<F>(a as i32, r, f),
        "from_u32" => from_u32::<F>(a as u32, r, f),
        "from_i64" => from_i64::<F>(a as i64, r, f),
        "from_u64" => from_u64::<F>(a, r, f),
        _ => panic!("no operation {name}"),
    }
}

#[test]
fn known_results() {
    let lines = VECTORS
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'));
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, format, numbers @ ..] = &words[..] else {
            panic!("{line}");
        };
        let number = |at: usize| u64::from_str_radix(numbers[at], 16).unwrap();
        let operands = [number(1), number(2), number(3)];
        let round = Round::from_code(number(0) as u8).unwrap();
        let mut flags = Flags::default();
        let result = match *format {
            "f16" => run::<F16>(name, operands, round, &mut flags),
            "f32" => run::<F32>(name, operands, round, &mut flags),
            "f64" => run::<F64>(name, operands, round, &mut flags),
            _ => panic!("{line}"),
        };
        assert_eq!((result, flags.0.into()), (number(5), number(6)), "{line}");
    }
}
