package bench

import (
	"sync"
	"time"
)

// peak samples the resident memory of the process until stop, which returns the largest sample in MiB.
func peak() (stop func() float64) {
	var most float64
	var ended sync.WaitGroup
	quit := make(chan struct{})
	ended.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			most = max(most, rss())
			select {
			case <-tick.C:
			case <-quit:
				return
			}
		}
	})
	return func() float64 {
		close(quit)
		ended.Wait()
		return max(most, rss())
	}
}
