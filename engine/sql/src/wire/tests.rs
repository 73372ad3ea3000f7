use super::*;
use crate::codec::{PLAN_VERSION, PlanCodec};
use datafusion_proto::physical_plan::DefaultPhysicalProtoConverter;
use datafusion_proto::physical_plan::{AsExecutionPlan as _, PhysicalExtensionCodec as _};
use datafusion_proto::protobuf::PhysicalPlanNode;

fn works() -> Vec<Vec<Work>> {
    let source = |name: &str, isa: Option<&str>| TraceSource {
        path: format!("/traces/{name}").into(),
        name: name.to_owned(),
        given: Given {
            elf: vec!["/traces/program.elf@0x80000000".to_owned()],
            isa: isa.map(str::to_owned),
            ..Given::default()
        },
    };
    let part = |from, until| {
        let source = source("b.ntrace", Some("rv64gc"));
        Work::Part(Span {
            source,
            from,
            until,
        })
    };
    let stop = Stop {
        checkpoint: Checkpoint {
            offset: 7,
            position: 9,
        },
        state: vec![0, 1, 0xff],
    };
    vec![
        vec![Work::Whole(source("a.ntrace", None)), part(None, Some(9))],
        Vec::new(),
        vec![part(Some(stop), None)],
    ]
}

fn plan() -> Arc<dyn ExecutionPlan> {
    let table = Table::Calls;
    let schema = table.full_schema().project(&[0, 3]).unwrap();
    let extent = Extent {
        bytes: 3,
        all_bytes: 4,
        ..Extent::default()
    };
    let projection = Projection::NONE.with(1);
    let limits = Limits::default();
    let schema = Arc::new(schema);
    Arc::new(TraceExec::new(
        (table, projection),
        schema,
        works(),
        extent,
        limits,
    ))
}

fn bytes() -> Vec<u8> {
    let sent = to_send(plan(), "session").unwrap();
    let node = PhysicalPlanNode::try_from_physical_plan(sent, &PlanCodec::new()).unwrap();
    let mut bytes = Vec::new();
    node.try_encode(&mut bytes).unwrap();
    bytes
}

fn received(bytes: &[u8]) -> Result<Arc<dyn ExecutionPlan>> {
    let node = PhysicalPlanNode::try_decode(bytes)?;
    node.try_into_physical_plan(&TaskContext::default(), &PlanCodec::new())
}

/// A plan is the same when it was sent, and so are some of its partitions.
#[test]
fn plans_are_sent() {
    let plan = received(&bytes()).unwrap();
    let sent = plan.downcast_ref::<SentExec>().unwrap();
    assert_eq!(sent.schema(), self::plan().schema());
    assert_eq!(sent.trace.extent().bytes, 3);
    let found = (0..3).map(|partition| sent.works_of(partition).unwrap());
    assert_eq!(found.collect::<Vec<_>>(), works());
    // What a scheduler does for a task.
    let memory: &dyn Any = sent
        .works
        .downcast_ref::<DataSourceExec>()
        .unwrap()
        .data_source()
        .as_ref();
    let all = memory.downcast_ref::<MemorySourceConfig>().unwrap();
    let last = [all.partitions()[2].clone()];
    let last = MemorySourceConfig::try_new(&last, work_schema(), None).unwrap();
    let last = DataSourceExec::from_data_source(last);
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    let restricted = Arc::clone(&plan).replace_children(vec![last], options);
    let restricted = restricted.unwrap();
    let restricted = restricted.downcast_ref::<SentExec>().unwrap();
    assert_eq!(restricted.partitions(), 1);
    assert_eq!(restricted.works_of(0).unwrap(), works()[2]);
    assert!(restricted.works_of(1).is_err());
}

/// A plan of another version is refused with a message that says so.
#[test]
fn another_version_is_refused() {
    let text = bytes();
    let at = text
        .windows(PLAN_VERSION.len())
        .position(|bytes| bytes == PLAN_VERSION.as_bytes())
        .unwrap();
    let mut other = text.clone();
    other[at] = b'9';
    let error = received(&other).unwrap_err().to_string();
    let carried = carried(&format!("{error:?}")).unwrap();
    assert_eq!(carried.code, Code::WrongPlan);
    assert!(carried.text.contains(PLAN_VERSION), "{carried}");
    assert!(carried.text.contains("\n"), "{carried}");
}

/// Bytes that are damaged are an error, and other columns are, too.
#[test]
fn damaged_plans_are_refused() {
    let header = SentExec::of(plan().downcast_ref::<TraceExec>().unwrap(), "session").unwrap();
    let codec = PlanCodec::new();
    let mut good = Vec::new();
    let node: Arc<dyn ExecutionPlan> = header.clone();
    codec
        .try_encode(node, &mut good, &DefaultPhysicalProtoConverter {})
        .unwrap();
    let decode = |bytes: &[u8], inputs: &[Arc<dyn ExecutionPlan>]| {
        let context = TaskContext::default();
        codec.try_decode(bytes, inputs, &context, &DefaultPhysicalProtoConverter {})
    };
    let works = Arc::clone(&header.works);
    assert!(decode(&good, &[Arc::clone(&works)]).is_ok());
    assert!(decode(&good, &[]).is_err());
    for end in 0..good.len() {
        assert!(
            decode(&good[..end], &[Arc::clone(&works)]).is_err(),
            "{end}"
        );
    }
    let batch = RecordBatch::new_empty(Table::Calls.full_schema());
    assert!(Received::new(&batch, &[]).is_none());
    // A given that is not there.
    let batch = to_batch(&self::works()[0], &mut Vec::new()).unwrap();
    assert!(Received::new(&batch, &[]).unwrap().work(0).is_none());
}
