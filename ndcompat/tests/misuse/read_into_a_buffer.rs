fn example(pair: &ndcompat::Pair, buffer: ndcompat::Buffer, from: ndcompat::RemoteMemory) {
    let _ = pair.read(buffer, from).wait();
}

fn main() {}
