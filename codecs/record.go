package codecs

// Record is one Kafka record, free of any client library.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	Time      int64 // append time, ms since the epoch
	Key       []byte
	Value     []byte // nil = null
	Headers   []Header
}

// Header returns the value of the last header of that name (Kafka's convention for repeated names) and whether there is
// one.
func (r *Record) Header(name string) ([]byte, bool) {
	for i := len(r.Headers) - 1; i >= 0; i-- {
		if r.Headers[i].Key == name {
			return r.Headers[i].Value, true
		}
	}
	return nil, false
}

// Size is an upper bound of the bytes that the record takes in a batch of its own, without compression: what a topic's
// max.message.bytes is about.
func (r *Record) Size() int {
	const batch, record, header = 61, 35, 10 // the fixed parts, with lengths at their longest
	n := batch + record + len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += header + len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return n
}
