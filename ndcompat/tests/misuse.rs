//! What must not compile: memory that the device may be using is out of a program's reach.

#[test]
fn misuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}
