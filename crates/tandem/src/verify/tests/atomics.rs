//! Notes 38: atomic operations, and who decides whether a store-conditional
//! stores.

use super::*;

const THERE: u64 = BASE + 0x800;

fn bench(store_data: StoreData, program: &[u32]) -> Bench {
    let config = Config {
        store_data,
        ..Config::default()
    };
    let mut bench = Bench::with(config, program);
    pointers(&mut bench);
    bench.toy.x[5] = 3;
    let addr = THERE;
    bench
        .toy
        .write(Place::Memory { addr, size: 4 }, 10)
        .unwrap();
    bench
}

fn data(value: u64) -> [Item; 2] {
    [Item::EffectiveAddress(THERE), Item::StoreData(2, value)]
}

/// The result is told by default, the operand in the dialect of the Bluespec
/// cores, where the result is accepted as well.
#[test]
fn results_and_operands() {
    let told = |dialect, value| {
        let mut bench = bench(dialect, &[amo(0, 6, 10, 5), lw(7, 0, 10)]);
        let items = [&[x(6, 10)][..], &data(value)].concat();
        bench.insn(amo(0, 6, 10, 5), &items);
        bench.insn(lw(7, 0, 10), &[x(7, 13)]);
        bench.mismatches()
    };
    assert_eq!(told(StoreData::Result, 13), [""; 0]);
    assert_eq!(told(StoreData::Operand, 3), [""; 0]);
    assert_eq!(told(StoreData::Operand, 13), [""; 0]);
    assert_eq!(told(StoreData::Operand, 4), ["0: store data d/4"]);
    assert_eq!(told(StoreData::Result, 3), ["0: store data d/3"]);
}

#[test]
fn the_old_value_is_compared() {
    let mut bench = bench(StoreData::Result, &[amo(0, 6, 10, 5)]);
    let items = [&[x(6, 11)][..], &data(13)].concat();
    bench.insn(amo(0, 6, 10, 5), &items);
    assert_eq!(bench.mismatches(), ["0: t1 a/b"]);
}

const LR: u32 = 0x1005_22af | 0x300;
const SC: u32 = 0x1855_232f | 0x80;

fn reserved(dialect: StoreData) -> Bench {
    // lr.w t2, (a0); sc.w t1, t0, (a0); lw s0, 0(a0)
    let mut bench = bench(dialect, &[amo(2, 7, 10, 0), amo(3, 6, 10, 5), lw(8, 0, 10)]);
    let mut items = vec![x(7, 10), Item::EffectiveAddress(THERE)];
    if dialect == StoreData::Operand {
        items.push(Item::StoreData(2, 0));
    }
    bench.insn(amo(2, 7, 10, 0), &items);
    bench
}

fn conditional(bench: &mut Bench, items: &[Item], then: u64) -> (Vec<String>, u64) {
    bench.insn(amo(3, 6, 10, 5), items);
    bench.insn(lw(8, 0, 10), &[x(8, then)]);
    let outcome = bench.run();
    (
        outcome.heard.mismatches,
        outcome.counters.conditionals_taken,
    )
}

#[test]
fn the_bits_are_what_they_are_meant_to_be() {
    assert_eq!(amo(2, 7, 10, 0) & 0xf800_707f, LR & 0xf800_707f);
    assert_eq!(amo(3, 6, 10, 5) & 0xf800_707f, SC & 0xf800_707f);
}

#[test]
fn a_store_conditional_that_succeeds_on_both_sides() {
    let items = [&[x(6, 0)][..], &data(3)].concat();
    let told = conditional(&mut reserved(StoreData::Result), &items, 3);
    assert_eq!(told, (vec![], 0));
    let told = conditional(&mut reserved(StoreData::Operand), &items, 3);
    assert_eq!(told, (vec![], 0));
}

/// It may fail for reasons of its own: nothing is stored then.
#[test]
fn a_store_conditional_that_fails_in_the_trace() {
    let failed = [x(6, 1), Item::EffectiveAddress(THERE)];
    let told = conditional(&mut reserved(StoreData::Result), &failed, 10);
    assert_eq!(told, (vec![], 1));
    // The operand is told all the same.
    let items = [&[x(6, 1)][..], &data(3)].concat();
    let told = conditional(&mut reserved(StoreData::Operand), &items, 10);
    assert_eq!(told, (vec![], 1));
}

/// Both fail: the operand is told where that is the dialect.
#[test]
fn a_store_conditional_that_fails_on_both_sides() {
    let program = [amo(3, 6, 10, 5), lw(8, 0, 10)];
    let quiet = [x(6, 1), Item::EffectiveAddress(THERE)];
    let told = conditional(&mut bench(StoreData::Result, &program), &quiet, 10);
    assert_eq!(told, (vec![], 0));
    let items = [&[x(6, 1)][..], &data(3)].concat();
    let told = conditional(&mut bench(StoreData::Operand, &program), &items, 10);
    assert_eq!(told, (vec![], 0));
    let (told, _) = conditional(&mut bench(StoreData::Result, &program), &items, 10);
    assert_eq!(told.len(), 1, "{told:?}");
}

/// Without a result only the store tells.
#[test]
fn a_store_conditional_without_a_result() {
    let program = [amo(2, 7, 10, 0), amo(3, 0, 10, 5), lw(8, 0, 10)];
    for (stores, then, holds) in [(true, 3, true), (false, 10, true), (true, 3, false)] {
        let mut bench = bench(StoreData::Result, &program[usize::from(!holds)..]);
        if holds {
            bench.insn(program[0], &[x(7, 10), Item::EffectiveAddress(THERE)]);
        }
        let items = if stores { &data(3)[..] } else { &data(3)[..1] };
        bench.insn(program[1], items);
        bench.insn(program[2], &[x(8, then)]);
        bench.agrees();
    }
}

/// The model has lost a reservation that the core has kept.
#[test]
fn a_store_conditional_that_succeeds_in_the_trace() {
    let mut bench = bench(StoreData::Result, &[amo(3, 6, 10, 5), lw(8, 0, 10)]);
    let items = [&[x(6, 0)][..], &data(3)].concat();
    let told = conditional(&mut bench, &items, 3);
    assert_eq!(told, (vec![], 1));
}

#[test]
fn a_store_conditional_stores_its_operand() {
    let items = [&[x(6, 0)][..], &data(4)].concat();
    let (told, _) = conditional(&mut reserved(StoreData::Result), &items, 4);
    assert_eq!(told, ["1: store data 3/4"]);
}

/// Success without a store, and failure with one, are contradictions.
#[test]
fn a_store_conditional_that_contradicts_itself() {
    let mut lonely = bench(StoreData::Result, &[amo(3, 6, 10, 5), lw(8, 0, 10)]);
    let quiet = [x(6, 0), Item::EffectiveAddress(THERE)];
    let (told, _) = conditional(&mut lonely, &quiet, 10);
    assert_eq!(told.len(), 1, "{told:?}");
    let items = [&[x(6, 1)][..], &data(3)].concat();
    let (told, _) = conditional(&mut reserved(StoreData::Result), &items, 10);
    assert_eq!(told.len(), 1, "{told:?}");
}

/// A result is 0 or 1.
#[test]
fn a_store_conditional_gives_nothing_else() {
    let items = [&[x(6, 2)][..], &data(3)].concat();
    let (told, _) = conditional(&mut reserved(StoreData::Result), &items, 3);
    assert_eq!(told, ["1: t1 0/2"]);
}

/// What an LR tells as data is its rs2, which is no store.
#[test]
fn data_of_a_load_reserved_is_not_stored() {
    let mut bench = reserved(StoreData::Operand);
    bench.toy.x[5] = 10;
    let outcome = bench.agrees();
    assert_eq!(outcome.verifier.shadow().memory.read(THERE, 4), 10);
    assert_eq!(outcome.verifier.model.load(THERE, 4), Some(10));
}
