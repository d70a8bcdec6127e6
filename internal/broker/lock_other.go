//go:build !unix

package broker

import (
	"errors"
	"fmt"
	"os"
)

// openLocked creates the file exclusively. A killed broker leaves it behind; the error names it.
func openLocked(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%w (remove %s if there is none)", ErrDataDirInUse, path)
	}
	return f, err
}

func (l *dirLock) release() error {
	return errors.Join(l.f.Close(), os.Remove(l.f.Name()))
}
