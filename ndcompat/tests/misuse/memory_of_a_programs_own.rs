fn example(pair: &ndcompat::Pair, bytes: Vec<u8>) {
    drop(pair.send(bytes));
}

fn main() {}
