//! Signals that a row has once, and those it has for each block.

use hartrace_isa::Itype;

use super::*;
use hartrace_flow::Trigger;

const HEAD: &str = "itype_0,itype_1,cause,tval,priv,iaddr_0,iaddr_1,context,time,ctype,\
                    iretire_0,iretire_1,ilastsize_0,ilastsize_1";

const ON: Trigger = Trigger::from_bits(1);
const OFF: Trigger = Trigger::from_bits(2);
const NOTIFY: Trigger = Trigger::from_bits(4);

fn two(tail: &str, row: &str) -> Vec<Ingress> {
    let (rows, bad, _) = rows(Iretire::Halfwords, &format!("{HEAD}{tail}\n{row}\n"));
    assert_eq!((bad, rows.len()), (vec![], 1));
    rows.concat()
}

#[test]
fn what_a_cycle_has_once_stands_in_one_block() {
    let tail = ",trigger,halted,reset,impdef,external,lost,power_down";
    let blocks = two(
        tail,
        "5,2,7,abc,1,1000,2000,9,55,2,2,4,1,1,11,1,1,1f,129,1,1",
    );
    let levels = Ingress {
        mode: Mode::S,
        context: Context(9),
        time: 55,
        halted: true,
        reset: true,
        power_down: true,
        impdef: 0x1f,
        ilastsize: 1,
        ..Ingress::default()
    };
    let want = [
        Ingress {
            itype: Itype::Taken,
            iaddr: 0x1000,
            iretire: 2,
            ctype: Ctype::Precise,
            trigger: ON,
            external: 129,
            lost: true,
            ..levels
        },
        Ingress {
            itype: Itype::Interrupt,
            iaddr: 0x2000,
            iretire: 4,
            cause: 7,
            tval: 0xabc,
            trigger: Trigger {
                off: true,
                ..NOTIFY
            },
            block: 1,
            ..levels
        },
    ];
    assert_eq!(blocks, want);
}

#[test]
fn trace_off_stands_in_the_newest_valid_block() {
    let one = two(",trigger", "0,0,0,0,3,1000,0,0,0,0,2,0,1,0,3");
    let both = Trigger { on: true, ..OFF };
    assert_eq!((one.len(), one[0].trigger), (1, both));
    let idle = two(",trigger", "0,0,0,0,3,0,0,0,0,0,0,0,0,0,2");
    assert_eq!((idle.len(), idle[0].trigger), (1, OFF));
    // A block that shows nothing but its notify bit is there for that.
    let blocks = two(",trigger", "0,0,0,0,3,1000,0,0,0,0,2,0,1,0,10");
    let triggers: Vec<_> = blocks.iter().map(|b| b.trigger).collect();
    assert_eq!(triggers, [OFF, NOTIFY]);
}

#[test]
fn the_draft_has_a_trigger_for_each_block() {
    let row = "5,0,0,0,3,1000,2000,0,0,0,2,4,1,1,6,1";
    let blocks = two(",trigger_0,trigger_1", row);
    let off = Trigger {
        off: true,
        ..NOTIFY
    };
    assert_eq!((blocks[0].trigger, blocks[1].trigger), (off, ON));
    // Written as one signal.
    let text = format!("{HEAD},trigger_0,trigger_1\n{row}\n");
    let (_, _, reader) = rows(Iretire::Halfwords, &text);
    let writer = IngressWriter::new(reader.columns().unwrap(), Iretire::Halfwords);
    let mut out = String::new();
    writer.write_header(&mut out).unwrap();
    writer.write_row(&mut out, &blocks).unwrap();
    assert_eq!(
        out,
        format!("{HEAD},trigger\n5,0,0,0,3,1000,2000,0,0,0,2,4,1,1,7\n")
    );
}

#[test]
fn triggers_have_as_many_bits_as_there_are_blocks() {
    for (tail, values, last) in [
        (",trigger", "15", Ok(())),
        (",trigger", "16", Err("trigger")),
        (",trigger_0,trigger_1", "7,7", Ok(())),
        (",trigger_0,trigger_1", "7,8", Err("trigger")),
    ] {
        let text = format!("{HEAD}{tail}\n5,0,0,0,3,1000,2000,0,0,0,2,4,1,1,{values}\n");
        let (_, bad, _) = rows(Iretire::Halfwords, &text);
        let want = last.map_err(LineErrorKind::Value);
        assert_eq!(bad.first().map_or(Ok(()), |e| Err(e.kind)), want);
    }
    for tail in [
        ",trigger,trigger_0",
        ",trigger_1,trigger",
        ",trigger,trigger",
        ",trigger_1,trigger_1",
    ] {
        let (_, bad, _) = rows(Iretire::Halfwords, &format!("{HEAD}{tail}\n"));
        assert_eq!(bad[0].kind, LineErrorKind::Header, "{tail}");
    }
}

#[test]
fn cause_and_tval_are_written_of_the_block_that_traps() {
    let branch = Ingress {
        itype: Itype::Taken,
        iretire: 2,
        ilastsize: 1,
        cause: 99,
        tval: 99,
        ..Ingress::default()
    };
    let trap = Ingress {
        itype: Itype::Exception,
        cause: 13,
        tval: 0xdead,
        block: 1,
        ..Ingress::default()
    };
    let columns = IngressColumns {
        groups: 2,
        ..IngressColumns::default()
    };
    let writer = IngressWriter::new(columns, Iretire::Halfwords);
    for (row, want) in [
        (&[branch, trap][..], "5,1,13,dead,3,"),
        (&[branch], "5,0,99,63,3,"),
        (&[], "0,0,0,0,3,"),
    ] {
        let mut out = String::new();
        writer.write_row(&mut out, row).unwrap();
        assert!(out.starts_with(want), "{out}");
    }
}

#[test]
fn odd_lengths_are_written_as_one_instruction() {
    let writer = IngressWriter::new(IngressColumns::default(), Iretire::Instructions);
    let fits = |iretire, ilastsize| {
        let block = Ingress {
            iretire,
            ilastsize,
            ..Ingress::default()
        };
        let mut out = String::new();
        let done = writer.write_row(&mut out, &[block]);
        assert!(done.is_err() || out.ends_with(&format!(",1,{ilastsize}\n")));
        done.is_ok()
    };
    for (size, lengths) in [(0, 1..=1), (1, 2..=2), (2, 3..=4), (3, 5..=8), (4, 9..=16)] {
        for halfwords in 1..40 {
            assert_eq!(fits(halfwords, size), lengths.contains(&halfwords));
        }
    }
}

#[test]
fn odd_lengths_are_rounded_up_without_an_image() {
    let head = "itype_0,cause,tval,priv,iaddr_0,iretire_0,ilastsize_0";
    let text = format!("{head}\n0,0,0,3,1000,1,2\n0,0,0,3,1006,1,4\n0,0,0,3,1000,1,5\n");
    let (rows, bad, _) = rows(Iretire::Instructions, &text);
    assert_eq!((rows[0][0].iretire, rows[1][0].iretire), (4, 16));
    assert_eq!(bad.len(), 1);
    assert_eq!(bad[0].kind, LineErrorKind::Value("ilastsize"));
}

/// A cycle that a table of these columns can express.
fn random_cycle(rng: &mut Random, has: &IngressColumns, retirement: Iretire) -> Vec<Ingress> {
    fn when(there: bool, rng: &mut Random, limit: usize) -> usize {
        if there { rng.index(limit) } else { 0 }
    }
    let wide = |rng: &mut Random| rng.draw();
    let modes = [Mode::U, Mode::S, Mode::M, Mode::D, Mode::VU, Mode::VS];
    let levels = Ingress {
        mode: rng.one_of(modes),
        context: Context(if has.context { wide(rng) } else { 0 }),
        time: if has.time { wide(rng) } else { 0 },
        halted: when(has.halted, rng, 2) != 0,
        reset: when(has.reset, rng, 2) != 0,
        power_down: when(has.power_down, rng, 2) != 0,
        impdef: when(has.impdef, rng, 1 << 32) as u32,
        ..Ingress::default()
    };
    let count = 1 + rng.index(usize::from(has.groups));
    let mut blocks = Vec::new();
    for index in 0..count {
        // Only the newest block traps; all but the first are valid.
        let newest = index + 1 == count;
        let itype = match rng.below(16) as u8 {
            1 | 2 if !newest => Itype::None,
            code => Itype::from_code(code).unwrap(),
        };
        let ilastsize = rng.below(5) as u8;
        let some = rng.below(3) > 0 || (index > 0 && itype == Itype::None);
        let iretire = match retirement {
            _ if !some => 0,
            Iretire::Instructions => 1 << ilastsize,
            Iretire::Halfwords => 1 + rng.below(1 << 20) as u32,
        };
        let (oldest, traps) = (index == 0, itype.is_trap());
        let once = |there: bool, rng: &mut Random| there && rng.flip();
        blocks.push(Ingress {
            itype,
            iretire,
            ilastsize,
            iaddr: wide(rng),
            cause: when(traps, rng, 1 << 32) as u32,
            tval: if traps { wide(rng) } else { 0 },
            ctype: Ctype::from_code(when(has.ctype && oldest, rng, 4) as u8).unwrap(),
            sijump: once(has.sijump, rng),
            block: index as u8,
            trigger: Trigger {
                on: once(has.trigger && oldest, rng),
                off: once(has.trigger && newest, rng),
                notify: once(has.trigger, rng),
            },
            external: when(has.external && oldest, rng, 256) as u8,
            lost: once(has.lost && oldest, rng),
            pending: once(has.pending && traps, rng).then(|| wide(rng)),
            ..levels
        });
    }
    blocks
}

#[test]
fn random_blocks_read_back_as_they_were_written() {
    let mut rng = Random::new(17);
    for round in 0..240 {
        let mut coin = || rng.below(4) > 0;
        let columns = IngressColumns {
            groups: 1 + round % 8,
            context: coin(),
            time: coin(),
            ctype: coin(),
            sijump: coin(),
            trigger: coin(),
            halted: coin(),
            reset: coin(),
            impdef: coin(),
            external: coin(),
            lost: coin(),
            power_down: coin(),
            pending: coin(),
            hart: false,
            accesses: 0,
        };
        let retirement = rng.one_of([Iretire::Instructions, Iretire::Halfwords]);
        let cycles: Vec<_> = (0..20)
            .map(|_| random_cycle(&mut rng, &columns, retirement))
            .collect();
        let writer = IngressWriter::new(columns, retirement);
        let mut text = String::new();
        writer.write_header(&mut text).unwrap();
        for cycle in &cycles {
            writer.write_row(&mut text, cycle).unwrap();
        }
        let (again, bad, reader) = rows(retirement, &text);
        assert_eq!((bad, reader.columns()), (vec![], Some(columns)));
        assert_eq!(again, cycles, "{text}");
        assert_writes_back(retirement, &text);
    }
}
