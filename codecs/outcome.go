package codecs

// Outcomes of a task, short names of the generated codes.
const (
	OK        = Outcome_ok
	Failed    = Outcome_failed
	Skipped   = Outcome_skipped
	Cancelled = Outcome_cancelled
	TimedOut  = Outcome_timed_out
	Lost      = Outcome_lost
	Unknown   = Outcome_unknown
)

// IsFailure says whether an outcome counts against a failure policy: failed, timed out and lost do.
func IsFailure(o Outcome_Code) bool { return o == Failed || o == TimedOut || o == Lost }

// worst orders outcomes from bad to good: a task over several legs ends with the worst of them.
var worst = [...]uint8{
	Outcome_unspecified: 0, Unknown: 1, OK: 2, Skipped: 3, Cancelled: 4, Lost: 5, TimedOut: 6, Failed: 7,
}

// Worst returns the worse of two outcomes: failed, timed out, lost, cancelled, skipped, ok.
func Worst(a, b Outcome_Code) Outcome_Code {
	if worst[a] >= worst[b] {
		return a
	}
	return b
}

// Terminal says whether a state ends a round: it absorbs everything but redrive.
func (s State_Code) Terminal() bool { return s >= State_completed && s <= State_collected }
