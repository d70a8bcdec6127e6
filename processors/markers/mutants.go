package markers

// Mutants are wrong forms of the machine; each ends some batch early or never. They are here to be switched on by
// tests: one that no test notices is a hole in the tests. The zero value is right.
type Mutants struct {
	// ForwardFirst sends END on at the first END: another source's data may still come (early).
	ForwardFirst bool
	// CountEnds counts markers instead of keeping the set of their sources: a repeated one stands for a missing one (early).
	CountEnds bool
	// Volatile leaves the sets out of the state: after a restart only the rest of the markers is seen (stuck).
	Volatile bool
	// Unpinned requires END from the upstream units of the topics as they are now, not as the batch pinned them: a
	// partition added in the middle is missed (early) or waited for (stuck).
	Unpinned bool
	// Unflushed asks for END without waiting for a cut: it may overtake the outputs that are not acked yet (early).
	Unflushed bool
}
