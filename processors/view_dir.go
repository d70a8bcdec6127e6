package processors

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	ldb "github.com/syndtr/goleveldb/leveldb/storage"
)

// maxViewDirs is the number of views of one topic that can share a data directory.
const maxViewDirs = 64

// lockDir takes the first folder of the data directory that no other view of the topic uses: views, views.2, views.3 ...
// A later view finds the copy there. The lock ends with the process or with unlock.
func (f *follower) lockDir() (dir string, unlock func() error, err error) {
	for i := 1; i <= maxViewDirs; i++ {
		name := "views"
		if i > 1 {
			name += "." + strconv.Itoa(i)
		}
		dir = filepath.Join(f.cfg.DataDir, name)
		lock, oerr := ldb.OpenFile(filepath.Join(dir, f.topic, "lock"), false)
		if oerr == nil {
			return dir, lock.Close, nil
		}
		err = errors.Join(err, oerr)
	}
	return "", nil, fmt.Errorf("no folder for the view of %s: %w", f.topic, err)
}
