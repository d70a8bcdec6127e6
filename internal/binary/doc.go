// Package binary tests the quiesce binary from outside, as a user runs it: built once per test binary, run with
// arguments, killed, its output and exit code looked at.
//
//	func TestMain(m *testing.M) { binary.Main(m) }
//
//	r := binary.Run(t, "stdin", "topology", "validate", "-")    // to its end
//	p := binary.Start(t, "dev", "--data", dir)                  // beside the test; killed at its end
//	p.WaitFor("listening")
//	p.Signal(syscall.SIGKILL)
//	code := p.Wait()
//
// The binary sees a home of the test's own and none of the machine's QUIESCE_ settings. It is built with the race
// detector when the test is.
package binary
