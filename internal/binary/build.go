package binary

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"

	// What the binary is made of: otherwise go test would show a cached result after a change in it.
	_ "github.com/quiesce/quiesce/internal/cli"
)

// dir holds the binary; Main makes and removes it.
var dir string

// Main is the TestMain of a package that uses this one.
func Main(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	var err error
	if dir, err = os.MkdirTemp("", "quiesce-binary-"); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	return m.Run()
}

var build = sync.OnceValues(func() (string, error) {
	path := filepath.Join(dir, "quiesce")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	args := []string{"build", "-o", path}
	if raced() {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "github.com/quiesce/quiesce/cmd/quiesce")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build quiesce: %w\n%s", err, out)
	}
	return path, nil
})

// Path builds the binary if no test did so before, and returns it.
func Path(t testing.TB) string {
	t.Helper()
	if dir == "" {
		t.Fatal("package binary needs: func TestMain(m *testing.M) { binary.Main(m) }")
	}
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// raced reports whether this program was built with the race detector.
func raced() bool {
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}
