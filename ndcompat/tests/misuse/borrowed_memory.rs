fn example(pair: &ndcompat::Pair, buffer: &mut ndcompat::Buffer) {
    drop(pair.receive(buffer));
}

fn main() {}
