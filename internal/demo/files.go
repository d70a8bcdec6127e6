package demo

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Skipped is a folder that could not be listed.
type Skipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Files lists the regular .go files under root, as slash-separated paths relative to it, in lexical order. Folders that
// cannot be listed are returned beside them; a root that cannot is an error.
func Files(root string) (paths []string, skipped []Skipped, err error) {
	if st, err := os.Stat(root); err != nil {
		return nil, nil, fmt.Errorf("input folder: %w", err)
	} else if !st.IsDir() {
		return nil, nil, fmt.Errorf("input folder: %s is not a folder", root)
	}
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, p)
		rel = filepath.ToSlash(rel)
		switch {
		case err != nil && p == root:
			return err
		case err != nil:
			skipped = append(skipped, Skipped{Path: rel, Reason: reason(err)})
			return nil
		case d.Type().IsRegular() && strings.HasSuffix(p, ".go"):
			paths = append(paths, rel)
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("input folder: %w", err)
	}
	return paths, skipped, nil
}

// GoSource is the folder of the local Go toolchain's own source.
func GoSource() (string, error) {
	root := os.Getenv("GOROOT")
	if root == "" {
		out, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			return "", fmt.Errorf("find the Go toolchain's source: %w (name a folder with --input)", err)
		}
		root = strings.TrimSpace(string(out))
	}
	dir, err := filepath.EvalSymlinks(filepath.Join(root, "src"))
	if err != nil {
		return "", fmt.Errorf("find the Go toolchain's source: %w (name a folder with --input)", err)
	}
	return dir, nil
}
