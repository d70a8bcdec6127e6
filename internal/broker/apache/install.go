//go:build unix

package apache

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
)

// Version is the release that Maven fetches.
const Version = "4.4.0"

// dependencyPlugin is the Maven plugin that copies the jars, pinned.
const dependencyPlugin = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"

// ErrMissing says that something must be installed, or set, before Apache Kafka can run here.
var ErrMissing = errors.New("missing for Apache Kafka")

//go:embed pom.xml
var pom []byte

// Install is where Apache Kafka's jars and a Java that runs them are.
type Install struct {
	Java string // command
	Libs string // directory of the jars
}

// Find returns the installation of KAFKA_HOME when that is set, else the one in the user's cache directory; Maven fills
// it the first time. An error wraps ErrMissing when there is something to install, and says what.
func Find(ctx context.Context) (Install, error) {
	java, err := findJava(ctx)
	if err != nil {
		return Install{}, err
	}
	if home := os.Getenv("KAFKA_HOME"); home != "" {
		libs := filepath.Join(home, "libs")
		if !hasKafka(libs) {
			return Install{}, fmt.Errorf("%w: KAFKA_HOME is %s, which has no libs/kafka_2.13-4.*.jar", ErrMissing, home)
		}
		return Install{Java: java, Libs: libs}, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return Install{}, fmt.Errorf("cache directory: %w", err)
	}
	libs := filepath.Join(cache, "quiesce", "kafka-"+Version)
	if !hasKafka(libs) {
		if err := fetch(ctx, libs); err != nil {
			return Install{}, err
		}
	}
	return Install{Java: java, Libs: libs}, nil
}

func hasKafka(libs string) bool {
	jars, err := filepath.Glob(filepath.Join(libs, "kafka_2.13-4.*.jar"))
	return err == nil && len(jars) > 0
}

// fetch fills libs with the jars that pom.xml names. The directory appears whole or not at all.
func fetch(ctx context.Context, libs string) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return fmt.Errorf("%w: Maven (mvn) is not in PATH; it fetches Apache Kafka %s once; or set KAFKA_HOME to an unpacked release", ErrMissing, Version)
	}
	slog.Info("fetching Apache Kafka with Maven", "version", Version, "into", libs)
	if err := os.MkdirAll(filepath.Dir(libs), 0o750); err != nil {
		return fmt.Errorf("fetch Apache Kafka: %w", err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(libs), "fetch-")
	if err != nil {
		return fmt.Errorf("fetch Apache Kafka: %w", err)
	}
	defer os.RemoveAll(tmp)
	jars := filepath.Join(tmp, "jars")
	if err := os.WriteFile(filepath.Join(tmp, "pom.xml"), pom, 0o600); err != nil {
		return fmt.Errorf("fetch Apache Kafka: %w", err)
	}
	cmd := exec.CommandContext(ctx, mvn, "--quiet", "--batch-mode", "--strict-checksums", "--file", filepath.Join(tmp, "pom.xml"),
		dependencyPlugin, "-DincludeScope=runtime", "-DoutputDirectory="+jars)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fetch Apache Kafka %s with Maven: %w\n%s", Version, err, tail(out))
	}
	if err := os.Rename(jars, libs); err != nil && !hasKafka(libs) { // another process may have been faster
		return fmt.Errorf("fetch Apache Kafka: %w", err)
	}
	return nil
}

// tail returns the end of a log, for an error message.
func tail(log []byte) []byte {
	const most = 4000
	return log[max(0, len(log)-most):]
}
