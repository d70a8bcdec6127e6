package batch

// What rows take beside the bytes that they are stored in: structs, maps, and sets that are dense in memory.
const (
	rowWeight   = 1024
	countWeight = 96 // of a chunk's counts in its header
	chunkWeight = 320
	legWeight   = 384
	freshWeight = 24
)

// Weight is about how much memory the header takes, in bytes.
func (r *Row) Weight() int {
	w := rowWeight
	for _, l := range []*life{r.run, r.next} {
		if l != nil {
			w += countWeight * len(l.chunks)
		}
	}
	return w
}

// Weight is about how much memory the chunk takes, in bytes.
func (c *Chunk) Weight() int {
	words := len(c.started.Words())
	for _, l := range c.legs {
		words += len(l.done.Words())
		for o := range l.by {
			words += len(l.by[o].Words())
		}
	}
	return chunkWeight + legWeight*len(c.legs) + 8*words + freshWeight*(cap(c.delta.fresh)+cap(c.delta.worse))
}
