fn example(pair: &ndcompat::Pair, buffer: ndcompat::Buffer) {
    let bytes = &buffer[..];
    let receiving = pair.receive(buffer);
    println!("{bytes:?}");
    let _ = receiving.wait();
}

fn main() {}
