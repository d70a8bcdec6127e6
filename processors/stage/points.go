package stage

// Point names a moment in the life of a session at which a test may let it crash.
type Point string

// The points, in the order in which a record meets them.
const (
	PointHandled   Point = "handled"   // a record was handled, its outputs are with the producer
	PointCut       Point = "cut"       // the unit was cut; nothing of the cut is acked yet
	PointOutputs   Point = "outputs"   // all outputs below the cut are acked
	PointMarkers   Point = "markers"   // END markers are acked
	PointReports   Point = "reports"   // reports are acked
	PointCommitted Point = "committed" // offsets are committed
	PointRevoked   Point = "revoked"   // a partition is drained, before its last commit
)
