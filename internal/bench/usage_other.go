//go:build !linux

package bench

import "time"

// usage is what the process and the machine have used so far; only Linux tells.
type usage struct {
	at  time.Time
	own time.Duration
}

func now() usage { return usage{at: time.Now()} }

func (u usage) foreign() float64 { return 0 }

func rss() float64 { return 0 }

func residentOf(int) (resident, most float64, ok bool) { return 0, 0, false }
