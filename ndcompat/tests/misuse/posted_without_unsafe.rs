fn example(pair: &ndcompat::QueuePair) {
    let _ = pair.receive(0, &[ndcompat::types::Sge::default()]);
}

fn main() {}
