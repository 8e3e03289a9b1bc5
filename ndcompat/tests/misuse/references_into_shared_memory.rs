fn example(memory: &ndcompat::SharedMemory) -> u8 {
    memory[0]
}

fn main() {}
