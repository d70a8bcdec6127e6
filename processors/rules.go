package processors

// rules are the switches by which tests turn single rules of the write protocol off, to see that something breaks. The
// zero value, all rules on, is the only one outside of tests.
type rules struct {
	outputsBeforeRow   bool // outputs leave before the rows are acknowledged
	resendAll          bool // a replay re-sends the whole outbox
	rowByRow           bool // outputs leave row by row, not in input order
	commitEarly        bool // the offset is committed before the outputs are acknowledged
	commitUnacked      bool // the offset is committed when the rows are sent
	noClaim            bool // records are not judged by claim: the last writer wins
	ignoreGap          bool // gaps of the changelog are not read
	outputsBeforeGap   bool // outputs leave before the gap that the acks revealed was handled
	keepStale          bool // recovery does not rewrite stale keys
	offsetOverGap      bool // the store's offset moves over a gap before the rewrite is acknowledged
	partsFirst         bool // part rows are written before header rows
	deleteAtOnce       bool // the null record is written without a marker that became durable
	nullBeforePosition bool // the null record is written before the position passed the marker
	positionOfRows     bool // the position is written when the rows are durable, not the outputs
	keepOldStore       bool // a local copy older than the deletes is kept
	compactedGapOK     bool // records of a gap that are compacted away are ignored
	noStatusRepeat     bool // the status is not sent again at take-over
	followGroup        bool // consumption starts where the group says
	noDedupe           bool // repeats of machine-emitted inputs are not dropped
	poisonStops        bool // poison fails the partition
	noReroute          bool // records on the wrong partition are taken
	noQuarantine       bool // a row whose Step panics is not set aside
	evictDirty         bool // rows are evicted without being clean
	ignoreSendErrors   bool // a failed send is taken for an ack
	lateDue            bool // a due output waits for the age of the cut
	ignoreTopicID      bool // the position is not bound to the incarnation of the topic
	ignoreStatusGap    bool // gaps of the status topic are not read
	deletePosition     bool // the position row is deleted when the partition is idle
	unpaced            bool // row writes do not stretch the cuts
	giveUp             bool // the processor is not built again
	gokaPause          bool // goka joins the group again, after its pause
	anyTopic           bool // the settings of the topics are not checked
	keepDamaged        bool // a damaged local copy is an error
}
