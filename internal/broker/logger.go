package broker

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kfake"
)

// logger hands kfake's messages to slog: its warnings are single refused requests, which clients report themselves.
type logger struct{ log *slog.Logger }

func (l logger) Logf(level kfake.LogLevel, format string, args ...any) {
	to := slog.LevelDebug
	if level == kfake.LogLevelError {
		to = slog.LevelError
	}
	if level == kfake.LogLevelNone || !l.log.Enabled(context.Background(), to) {
		return
	}
	l.log.Log(context.Background(), to, "embedded broker", "detail", fmt.Sprintf(format, args...))
}
