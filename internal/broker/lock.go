package broker

import (
	"fmt"
	"os"
	"path/filepath"
)

// lockName is the file in a data directory that its broker holds locked.
const lockName = "quiesce.lock"

// dirLock is the ownership of a data directory, held by a lock on a file in it.
type dirLock struct{ f *os.File }

// lockDir creates the directory when missing and takes it, or returns an error that wraps ErrDataDirInUse.
func lockDir(dir string) (*dirLock, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	f, err := openLocked(filepath.Join(dir, lockName))
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", dir, err)
	}
	return &dirLock{f: f}, nil
}
