package stage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// permanent marks an error that no further session can cure.
type permanent struct{ error }

func (e permanent) Unwrap() error { return e.error }

const (
	firstPause = 100 * time.Millisecond
	longPause  = 5 * time.Second
)

// supervise runs sessions one after the other until ctx is done. A session that fails is followed by another one after
// a pause that grows with each failure and starts again after a session that lived for a while.
func supervise(ctx context.Context, cfg Config) error {
	pause := firstPause
	for {
		began := time.Now()
		err := runSession(ctx, cfg)
		if p := (permanent{}); errors.As(err, &p) {
			return fmt.Errorf("stage %s: %w", cfg.Stage, err)
		}
		if ctx.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				return fmt.Errorf("stage %s: stop: %w", cfg.Stage, err)
			}
			return nil
		}
		if time.Since(began) > longPause {
			pause = firstPause
		}
		cfg.Log.Error("session ended, starting another", "stage", cfg.Stage, "pause", pause, "error", err)
		if sleep(ctx, pause/2+rand.N(pause/2)) != nil {
			return nil
		}
		pause = min(2*pause, longPause)
	}
}
