package bench

import (
	"sync"
	"time"
)

// measure is what one contender took.
type measure struct {
	seconds float64
	cpu     time.Duration
	foreign float64 // percent
}

// stopwatch runs from the first record handled. Its methods may be called from any goroutine.
type stopwatch struct {
	once  sync.Once
	begin usage
}

// first starts it; later calls cost an atomic load.
func (s *stopwatch) first() { s.once.Do(func() { s.begin = now() }) }

// stop ends it. It must not be called before first.
func (s *stopwatch) stop() measure {
	end := now()
	return measure{seconds: end.at.Sub(s.begin.at).Seconds(), cpu: end.own - s.begin.own, foreign: s.begin.foreign()}
}
