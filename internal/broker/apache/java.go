//go:build unix

package apache

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// MinJava is the oldest Java release that runs Apache Kafka 4.
const MinJava = 17

var javaVersion = regexp.MustCompile(`version "(\d+)`)

// findJava returns the java command of JAVA_HOME, else of PATH. The error says what to install.
func findJava(ctx context.Context) (string, error) {
	path, where := filepath.Join(os.Getenv("JAVA_HOME"), "bin", "java"), "JAVA_HOME"
	if os.Getenv("JAVA_HOME") == "" {
		where = "PATH"
		var err error
		if path, err = exec.LookPath("java"); err != nil {
			return "", fmt.Errorf("%w: Java %d or newer is not in PATH and JAVA_HOME is not set", ErrMissing, MinJava)
		}
	}
	out, err := exec.CommandContext(ctx, path, "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: Java %d or newer: %s (from %s) does not run: %w", ErrMissing, MinJava, path, where, err)
	}
	m := javaVersion.FindSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("%w: Java %d or newer: %s does not say its version: %s", ErrMissing, MinJava, path, out)
	}
	if n, _ := strconv.Atoi(string(m[1])); n < MinJava {
		return "", fmt.Errorf("%w: Java %d or newer: %s (from %s) is version %d", ErrMissing, MinJava, path, where, n)
	}
	return path, nil
}
