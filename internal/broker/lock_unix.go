//go:build unix

package broker

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// openLocked takes an advisory lock that ends with the process, so that a killed broker leaves nothing behind.
func openLocked(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrDataDirInUse
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

func (l *dirLock) release() error { return l.f.Close() }
