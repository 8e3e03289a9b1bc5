fn example(pair: &ndcompat::Pair, buffer: ndcompat::Buffer) {
    let receiving = pair.receive(buffer);
    drop(buffer);
    let _ = receiving.wait();
}

fn main() {}
